"""What the demo says of each policy, from what access points hold and did. Nothing is started."""
from __future__ import annotations

from oal_local import control

ACTED = [{"policy": "mark", "backend": 1, "changes": 12, "given_up": 3, "subjects": 4},
         {"policy": "rwnd-fair", "backend": 3, "changes": 1200, "given_up": 30, "subjects": 40}]
HOLDERS = {"rwnd-fair": ["a", "b"], "mark": ["a"], "uplink-cap": []}


def summary(**others) -> dict:
    return {"mode": {"a": "shadow", "b": "shadow"}, "killed": [], "acks_clamped": 1, "lowered": {"shadow": 1},
            "policies": control.policies(HOLDERS, ACTED), **others}


def test_each_policy_has_a_line_with_who_has_it_and_what_it_did():
    lines = control.policy_lines(control.policies(HOLDERS, ACTED))
    assert lines[0].split() == ("policy rwnd-fair 2 APs windows of downloads: bpf 1,200 changes of 40,"
                                " 30 given up").split()
    assert "shadow 12 changes of 4, 3 given up" in lines[1] and lines[2].endswith("windows of uploads: nothing yet")


def test_what_acted_without_a_known_holder_is_shown_too():
    assert control.policies({}, ACTED)["mark"] == {
        "aps": 0, "acted": {"shadow": {"changes": 12, "given_up": 3, "subjects": 4}}}


def test_a_policy_that_nobody_has_is_wrong():
    assert control.verdict(summary(), 2, live=False) == ["no AP has policy uplink-cap"]


def test_a_policy_that_only_said_something_is_wrong_at_a_live_access_point():
    wrong = control.verdict(summary(), 1, live=True)
    assert wrong == ["policy mark did nothing at the live AP", "no AP has policy uplink-cap"]
