"""The demo's second person: waits for the champion at the push service, and lets it go to everyone."""
from types import SimpleNamespace

import pytest
from oal_local import loop
from oal_local.errors import PlatformError


class Push:
    def __init__(self, *answers):
        self.answers, self.approved = list(answers), []

    def get(self, path):
        assert path == "/v1/rollouts"
        return {"rollouts": self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]}

    def approve(self, rollout, reason):
        self.approved.append((rollout, reason))
        return {"detail": f"approved by approver: {reason}"}


def row(step, version=2, slot="champion"):
    return {"id": f"{slot}{version}", "model": "congestion", "version": version, "slot": slot, "step": step}


def test_what_is_held_is_approved_and_said():
    push, said = Push([], [row("held", 1), row("held", 2, "canary")], [row("held")]), []
    loop.approve(SimpleNamespace(push=push, log=said.append), 2, "seen", 20)
    assert push.approved == [("champion2", "seen")]
    assert said == ["push: congestion/2 may go to every AP: approved by approver: seen"]


def test_what_is_not_held_needs_none():
    push = Push([row("completed")])
    loop.approve(SimpleNamespace(push=push, log=print), 2)
    assert push.approved == []


def test_a_champion_that_never_comes_is_said():
    with pytest.raises(PlatformError, match="no rollout of it after 0 s; see the logs"):
        loop.approve(SimpleNamespace(push=Push([]), log=print), 2, wait_s=0)
