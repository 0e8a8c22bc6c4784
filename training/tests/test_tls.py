"""The page with TLS, and MLflow's client, which believes a server by `ca_file`."""

import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest
from oal_training.errors import TrainingError
from oal_training.online.bearer import Bearer
from oal_training.online.config import Mlflow
from oal_training.online.metrics import Metrics
from oal_training.online.mlflow_client import Client, Refused, Unavailable
from oal_training.online.page import Page
from oal_training.server_tls import ServerTls


def issue(folder, name: str) -> tuple[str, str]:
    """Files of a certificate that signs itself and of its key."""
    cert, key = str(folder / "x.crt"), str(folder / "x.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return cert, key


@pytest.fixture
def page(tmp_path):
    made = Page(("127.0.0.1", 0), Metrics(), lambda: "", Bearer(None), ServerTls(*issue(tmp_path, "first")))
    made.start()
    yield made
    made.stop()


def address(page, scheme: str = "https") -> str:
    return f"{scheme}://127.0.0.1:{page._server.server_address[1]}"


def get(page, ca) -> str:
    context = ssl.create_default_context(cafile=ca)
    with urllib.request.urlopen(address(page) + "/healthz", timeout=10, context=context) as answer:
        return answer.read().decode()


def test_the_page_is_believed_by_its_authority_alone_and_says_nothing_in_plain(page, tmp_path):
    with socket.create_connection(page._server.server_address):  # one that says nothing keeps nobody waiting
        assert get(page, tmp_path / "x.crt") == "ok\n"
    with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
        get(page, None)
    with pytest.raises(OSError):
        urllib.request.urlopen(address(page, "http") + "/healthz", timeout=10)


def test_a_renewed_certificate_is_taken_without_a_restart_and_half_of_one_is_not(page, tmp_path):
    before = (tmp_path / "x.crt").read_text()
    key = (tmp_path / "x.key").read_text()
    issue(tmp_path, "second")
    new = (tmp_path / "x.key").read_text()
    (tmp_path / "x.key").write_text(key)
    (tmp_path / "old").write_text(before)
    assert get(page, tmp_path / "old") == "ok\n"
    (tmp_path / "x.key").write_text(new)
    assert get(page, tmp_path / "x.crt") == "ok\n"


def test_files_that_are_no_certificate_are_a_mistake_of_the_configuration(tmp_path):
    with pytest.raises(TrainingError, match="tls: "):
        ServerTls(str(tmp_path / "none"), str(tmp_path / "none"))


def test_mlflow_is_believed_by_its_authority_alone(page, tmp_path):
    (tmp_path / "password").write_text("long enough")

    def ask(ca):
        Client(Mlflow(address(page), "trainer", str(tmp_path / "password"), ca)).artifacts("run", "folder")

    with pytest.raises(Refused, match="404"):
        ask(str(tmp_path / "x.crt"))
    with pytest.raises(Unavailable, match="certificate verify failed"):
        ask(None)
    with pytest.raises(TrainingError, match="mlflow.ca_file"):
        ask(str(tmp_path / "none"))
