"""Client and server of the responsiveness test over loopback: HTTP/2 over TLS, no guest."""
import sys
import time

import pytest
from responsiveness import play

PLAN = {"interval_s": 0.1, "more": 1, "most": 2, "probes_per_s": 20, "control": "cubic"}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """(channel, client, loop, server, TLS contexts), with the libraries that the guest gets."""
    sys.path.append(play.libraries())
    from responsiveness import channel, client, loop, server
    files = play.credentials(tmp_path_factory.mktemp("tls"))
    yield channel, client, loop, server, channel.contexts(files["certificate"], files["key"])
    sys.path.remove(play.libraries())


@pytest.mark.parametrize("direction", ["down", "up"])
def test_load_and_probes(parts, direction):
    _, client, loop, server, (mine, theirs) = parts
    moving = loop.Loop()
    there = server.Server(moving, None, "127.0.0.1", theirs, "cubic")
    it = client.Test(moving, None, there, mine, PLAN | {"direction": direction}, seed=1)
    it.begin()
    give_up_s = time.monotonic() + 60

    def answered(kind: str) -> list[dict]:
        return [p for p in it.probes if p["kind"] == kind and p["end_s"] is not None]

    def moved(way: str) -> int:
        return it.intervals[-1][f"{way}_bytes"] if it.intervals else 0

    while time.monotonic() < give_up_s and (len(answered("self")) < 2 or len(answered("foreign")) < 2
                                            or len(it.intervals) < 3 or moved(direction) <= 100_000):
        moving.run(time.monotonic() + 0.02)
    for open_channel, _ in it.load:
        open_channel.close()
    there.listener.close()
    assert len(answered("self")) >= 2 and len(answered("foreign")) >= 2
    assert not it.failures and len(it.load) == 2
    assert all(p["tcp_ms"] > 0 and p["tls_ms"] > 0 and p["http_ms"] > 0 for p in answered("foreign"))
    assert all(p["http_ms"] > 0 and p["connection"] in (0, 1) for p in answered("self"))
    assert moved(direction) > 100_000 > moved({"down": "up", "up": "down"}[direction])


def test_a_server_that_is_not_trusted_is_a_failure(parts, tmp_path):
    channel, client, loop, server, (mine, _) = parts
    files = play.credentials(tmp_path)
    moving = loop.Loop()
    there = server.Server(moving, None, "127.0.0.1", channel.contexts(files["certificate"], files["key"])[1], "cubic")
    it = client.Test(moving, None, there, mine, PLAN | {"direction": "down"}, seed=1)
    it.begin()
    give_up_s = time.monotonic() + 60
    while time.monotonic() < give_up_s and not it.failures:
        moving.run(time.monotonic() + 0.02)
    assert any("CERTIFICATE_VERIFY_FAILED" in why for why in it.failures)
