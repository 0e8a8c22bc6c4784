"""/metrics asks for the token of its file; /healthz asks for nothing."""

import socket
import urllib.error
import urllib.request

import pytest
from oal_training.errors import TrainingError
from oal_training.online.bearer import Bearer
from oal_training.online.metrics import Metrics
from oal_training.online.page import REQUEST_S, Page


def get(page, path: str, token: str | None = None) -> tuple[int, str]:
    host, port = page._server.server_address
    request = urllib.request.Request(f"http://{host}:{port}{path}", headers={"Authorization": token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


@pytest.fixture
def guarded(tmp_path):
    (tmp_path / "token").write_text("right\n")
    page = Page(("127.0.0.1", 0), Metrics(), lambda: "", Bearer(str(tmp_path / "token")))
    page.start()
    yield page, tmp_path / "token"
    page.stop()


@pytest.mark.parametrize(
    "sent", [None, "Bearer", "Bearer ", "Bearer wrong", "right", "bearer right", "Basic right", "Bearer räight"]
)
def test_without_the_token_there_are_no_figures(guarded, sent):
    page, _ = guarded
    status, text = get(page, "/metrics", sent and sent.encode().decode("latin-1"))
    assert status == 401 and "oal_trainer" not in text


def test_with_it_there_are_and_refusals_are_counted(guarded):
    page, _ = guarded
    assert get(page, "/metrics")[0] == 401
    assert "oal_trainer_metrics_refused_total 1\n" in get(page, "/metrics", "Bearer right")[1]
    assert get(page, "/healthz") == (200, "ok\n")


def test_a_new_token_needs_no_restart_and_a_lost_one_admits_nobody(guarded):
    page, file = guarded
    file.write_text("newer\n")
    assert (get(page, "/metrics", "Bearer right")[0], get(page, "/metrics", "Bearer newer")[0]) == (401, 200)
    file.unlink()
    assert get(page, "/metrics", "Bearer newer")[0] == get(page, "/metrics", "Bearer ")[0] == 401


@pytest.mark.parametrize("text", [None, "", "\n"])
def test_a_file_without_a_token_is_a_mistake_of_the_configuration(tmp_path, text):
    if text is not None:
        (tmp_path / "token").write_text(text)
    with pytest.raises(TrainingError, match="metrics_token_file .*oal-ca init"):
        Bearer(str(tmp_path / "token"))


def test_a_client_that_says_nothing_is_let_go(guarded, monkeypatch):
    page, _ = guarded
    assert page._server.RequestHandlerClass.timeout == REQUEST_S
    monkeypatch.setattr(page._server.RequestHandlerClass, "timeout", 0.05)
    with socket.create_connection(page._server.server_address, timeout=20) as silent:
        assert silent.recv(1) == b""
