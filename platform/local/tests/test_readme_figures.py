"""What README says of the demo's last committed runs is what they wrote: `make demo ONCE=60` and `make demo LIVE=1
ONCE=160` write build/demo.json, which platform/local/results keeps without its list of sources.
"""
import json
import re
from pathlib import Path

import pytest
from oal_local import loop

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "platform/local/results"


@pytest.fixture(scope="module")
def page() -> str:
    return re.sub(r"\s+", " ", (ROOT / "README.md").read_text()).replace("−", "-")


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"


def test_the_replay(page):
    kept = json.loads((RESULTS / "demo.json").read_text())
    of = kept["loop"]
    assert not kept["live"] and not kept["wrong"] and of["judged"] == of["predictions"]
    right, base = (percent(of[name], of["judged"]) for name in ("right", "persistence_right"))
    assert f"{right} right where persistence was {base}" in page
    foresees = f"{loop.persistence_foresees(of):.0f}"
    assert (f"{of['onsets_foreseen']} of {of['onsets']} onsets foreseen where persistence foresees {foresees} with as"
            " many alarms") in page
    assert f"{of['first_foreseen']} of {of['first_drops']} drops with nothing dropped in the second before" in page


def test_the_live_access_point(page):
    kept = json.loads((RESULTS / "demo-live.json").read_text())
    turns, of = kept["turns"], kept["loop"]
    assert kept["live"] and not kept["wrong"] and set(kept["control"]["mode"].values()) == {"enforce"}
    said = [f"{turns[name]['off']:.{digits}f} to {turns[name]['on']:.{digits}f} {unit}"
            for name, digits, unit in (("delay", 0, "ms"), ("delay_p95", 0, "ms"), ("loss", 2, "%"),
                                       ("throughput", 1, "Mbit/s"))]
    assert "mean delay {}, p95 {}, congestion loss {}, throughput {}".format(*said) in page
    assert of["judged"] < of["predictions"]
    right, base = (percent(of[name], of["judged"]) for name in ("right", "persistence_right"))
    assert (f"The model was right {right} of the time there, persistence {base}: it alarmed at {of['alarms']} of"
            f" {of['judged']} decisions, for {of['onsets']} onsets") in page
    policies = kept["control"]["policies"]
    assert set(policies) == {"rwnd-fair", "mark", "uplink-cap"} and all("bpf" in p["acted"] for p in policies.values())
