"""What `oal-local demo` leaves behind. Nothing is started: platform and demo are stand-ins that note their calls."""
from __future__ import annotations

import pytest
from oal_local import cli


class Noted:
    """In place of the platform: what ran before, and what was called."""

    def __init__(self, ran_before: bool):
        self.processes, self.calls = (["kafka"] if ran_before else []), []

    def running(self):
        return self.processes

    def up(self):
        self.calls.append("up")
        self.processes = ["kafka"]
        return self

    def down(self):
        self.calls.append("down")
        self.processes = []


@pytest.mark.parametrize(("words", "ran_before", "stops"), [
    (["--once", "5"], False, True),
    (["--once", "5"], True, False),
    (["--once", "5", "--keep"], False, False),
    ([], False, False),
])
@pytest.mark.parametrize("fails", [False, True])
def test_a_demo_of_limited_length_stops_what_it_started(monkeypatch, capsys, words, ran_before, stops, fails):
    def demo(_platform, _options):
        if fails:
            raise KeyboardInterrupt
        return 0

    platform = Noted(ran_before)
    monkeypatch.setattr(cli.demo, "run", demo)
    options = cli.parser().parse_args(["demo", *words])
    if fails:
        with pytest.raises(KeyboardInterrupt):
            cli.run_demo(platform, options)
    else:
        assert cli.run_demo(platform, options) == 0
    assert platform.calls == ["up", "down"][:1 + stops]
    assert ("make down" in capsys.readouterr().out) is not stops, "whoever leaves something running says how to stop it"
