"""/metrics asks for the token of its file; /healthz asks for nothing."""

from __future__ import annotations

import pytest
from oal_registry.bearer import Bearer
from oal_registry.errors import RegistryError
from oal_registry.http_server import HttpServer
from oal_registry.status import Status
from oal_registry.webhook import Verifier
from processes import get, secret


@pytest.fixture
def guarded(tmp_path):
    file = secret(tmp_path / "token", "right")
    server = HttpServer("127.0.0.1", 0, Status(), Verifier("secret"), lambda: None, Bearer(str(file)))
    server.start()
    yield f"http://127.0.0.1:{server.port}", tmp_path / "token"
    server.stop()


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "right"},
        {"Authorization": "bearer right"},
    ],
)
def test_without_the_token_there_are_no_figures(guarded, sent):
    status, text = get(guarded[0] + "/metrics", headers=sent)
    assert status == 401 and "oal_registry_" not in text


def test_with_it_there_are_and_refusals_are_counted(guarded):
    url, _ = guarded
    assert get(url + "/metrics")[0] == 401
    status, text = get(url + "/metrics", headers={"Authorization": "Bearer right"})
    assert status == 200 and "oal_registry_metrics_refused_total 1" in text
    assert get(url + "/healthz")[0] in (200, 503)


def test_a_new_token_needs_no_restart_and_a_lost_one_admits_nobody(guarded):
    url, file = guarded
    secret(file, "newer")
    assert [get(url + "/metrics", headers={"Authorization": f"Bearer {t}"})[0] for t in ("right", "newer")] == [
        401,
        200,
    ]
    file.unlink()
    assert get(url + "/metrics", headers={"Authorization": "Bearer newer"})[0] == 401


def test_a_missing_or_open_file_is_a_mistake_of_the_configuration(tmp_path):
    with pytest.raises(RegistryError, match="token of /metrics: cannot read"):
        Bearer(str(tmp_path / "none"))
    (tmp_path / "open").write_text("x")
    (tmp_path / "open").chmod(0o644)
    with pytest.raises(RegistryError, match="chmod 600"):
        Bearer(str(tmp_path / "open"))
