"""The demo's second person."""
from types import SimpleNamespace

from oal_local.approver import Approver
from oal_local.errors import PlatformError


class Push:
    def __init__(self, *rollouts):
        self.rollouts, self.approved, self.away = list(rollouts), [], False

    def get(self, path):
        assert path == "/v1/rollouts"
        if self.away:
            raise PlatformError("no answer")
        return {"rollouts": self.rollouts}

    def approve(self, rollout, reason):
        self.approved.append(rollout)
        return {"detail": f"approved by approver: {reason}"}


def row(step, version):
    return {"id": f"r{version}", "model": "congestion", "version": version, "slot": "champion", "scope": "fleet",
            "mode": "shadow", "step": step}


def test_what_is_held_is_approved_and_said_once():
    push = Push(row("held", 2), row("completed", 1), row("stalled", 3))
    approver = Approver(SimpleNamespace(push=push))
    approver.look()
    assert push.approved == ["r2"]
    (said,) = approver.lines()
    assert said.startswith("push: champion congestion/2 in mode shadow for fleet was held; approved by approver:")
    assert approver.lines() == []


def test_a_push_service_that_is_away_is_asked_again():
    push = Push(row("held", 2))
    push.away = True
    approver = Approver(SimpleNamespace(push=push))
    approver.look()
    push.away = False
    approver.look()
    assert push.approved == ["r2"]


def test_it_ends():
    approver = Approver(SimpleNamespace(push=Push())).start()
    approver.stop()
