"""Listeners with TLS: the registry's page, and MLflow's server with a small program in place of MLflow's."""

from __future__ import annotations

import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import yaml
from oal_registry.bearer import Bearer
from oal_registry.http_server import HttpServer
from oal_registry.status import Status
from oal_registry.webhook import Verifier
from oal_training.server_tls import ServerTls
from processes import ENVIRONMENT, free_port, secret
from waiting import until

# What `oal-registry server` does, but for the database and what it serves.
SERVER = """
import os, sys
from oal_registry import promoter, server

async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"OK"})

promoter.create_app = lambda: app
server.prepare = lambda settings: print(server._bundle(settings), flush=True)
server.serve(sys.argv[1])
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "x.crt"), str(folder / "x.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return cert, key


def get(url: str, ca: str | None) -> int:
    with urllib.request.urlopen(url, timeout=10, context=ssl.create_default_context(cafile=ca)) as answer:
        return answer.status


def refused(port: int, path: str) -> None:
    """By who does not know the authority; and nobody is answered in plain."""
    with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
        get(f"https://127.0.0.1:{port}{path}", None)
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10)


def test_the_registrys_page(certificate):
    server = HttpServer(
        "127.0.0.1", 0, Status(), Verifier("secret"), lambda: None, Bearer(""), ServerTls(*certificate)
    )
    server.start()
    try:
        assert get(f"https://127.0.0.1:{server.port}/metrics", certificate[0]) == 200
        refused(server.port, "/metrics")
    finally:
        server.stop()


def test_mlflows_server_and_whom_its_webhooks_believe(certificate, tmp_path):
    cert, key = certificate
    port = free_port()
    file = tmp_path / "server.yaml"
    password = secret(tmp_path / "password", "long enough to be taken")
    file.write_text(
        yaml.safe_dump(
            {
                "listen": f"127.0.0.1:{port}",
                "state_dir": str(tmp_path / "state"),
                "admin": {"user": "admin", "password_file": password},
                "tls": {"cert": cert, "key": key},
                "ca_file": cert,
            }
        )
    )
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen([sys.executable, "-c", SERVER, file], stdout=log, stderr=log, env=ENVIRONMENT)

    def ready() -> bool:
        assert server.poll() is None, (tmp_path / "log").read_text()
        try:
            return get(f"https://127.0.0.1:{port}/health", cert) == 200
        except OSError:
            return False

    try:
        until(ready, "the server answers", 60)
        refused(port, "/health")
        bundle = (tmp_path / "state" / "authorities.pem").read_text()
        with open(cert, encoding="utf-8") as own:
            assert bundle.endswith(own.read()) and bundle.count("BEGIN CERTIFICATE") > 50
    finally:
        server.terminate()
        server.wait(30)


def test_webhooks_believe_the_authority():
    """MLflow's session takes nothing from the environment."""
    script = "from oal_registry import server; server._trust_in_webhooks('/x.pem')\n"
    script += "from mlflow.webhooks import delivery; print(delivery._get_or_create_webhook_session().verify)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert done.stdout == "/x.pem\n", done.stderr
