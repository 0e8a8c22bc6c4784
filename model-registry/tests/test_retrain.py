"""The tag retrain=requested becomes a training run and ends in a new version, whatever is killed meanwhile."""

from __future__ import annotations

import os
import signal

import pytest
from waiting import until

pytestmark = pytest.mark.usefixtures("running")


@pytest.fixture(autouse=True)
def again(behaviour):
    yield
    behaviour.write_text("again")


def numbers(owner) -> set[int]:
    return {int(v.version) for v in owner.client.search_model_versions("name='congestion'")}


def until_tag(owner, version: int, value: str) -> dict[str, str]:
    return until(
        lambda: (tags := owner.tags(version)).get("retrain.state") == value and "retrain" not in tags and tags,
        f"retrain.state={value} on version {version}",
    )


def child_of(service) -> int | None:
    """Process id of the training run."""
    try:
        with open(f"/proc/{service.pid}/task/{service.pid}/children") as file:
            return int((file.read().split() or [0])[0]) or None
    except OSError:
        return None


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_requested_runs_done_and_links_both_ways(owner, versions, service, behaviour):
    behaviour.write_text("fit")
    before = numbers(owner)
    owner.tag(versions[0], "retrain", "requested")
    tags = until_tag(owner, versions[0], "done")
    (new,) = numbers(owner) - before
    assert tags["retrained_as"] == str(new) and owner.tags(new)["retrained_from"] == str(versions[0])
    assert owner.client.get_run(owner.client.get_model_version("congestion", str(new)).run_id).info.status == "FINISHED"
    assert service.metric('oal_registry_retrains_total{result="done"}') >= 1


def test_a_failed_run_says_why(owner, versions, behaviour):
    behaviour.write_text("fail")
    before = numbers(owner)
    owner.tag(versions[1], "retrain", "requested")
    until_tag(owner, versions[1], "failed: tiny_train: too few items: 37, need 200")
    assert numbers(owner) == before


def test_one_at_a_time_and_again_when_asked_again(owner, versions, service, behaviour):
    behaviour.write_text("wait")
    earlier = owner.tags(versions[0]).get("retrained_as")
    for version in versions[:2]:
        owner.tag(version, "retrain", "requested")

    def waiting_and_running():
        tags = [owner.tags(v) for v in versions[:2]]
        return [sum("retrain" in t for t in tags), sum(t.get("retrain.state") == "running" for t in tags)]

    until(lambda: waiting_and_running() == [1, 1], "one of two runs")
    service.passes(3)
    assert waiting_and_running() == [1, 1]
    assert service.metric("oal_registry_retrain_running") == 1
    behaviour.write_text("again")
    for version in versions[:2]:
        until_tag(owner, version, "done")
    assert owner.tags(versions[0])["retrained_as"] not in (None, earlier)


@pytest.mark.outage
def test_the_registry_killed_in_the_middle_of_a_run_begins_it_again(owner, versions, service, behaviour):
    behaviour.write_text("wait")
    before = numbers(owner)
    owner.tag(versions[2], "retrain", "requested")
    until_tag(owner, versions[2], "running")
    child = until(lambda: child_of(service), "training child")
    service.stop(signal.SIGKILL)
    until(lambda: gone(child), "the child dies with its parent")
    behaviour.write_text("again")
    assert owner.tags(versions[2])["retrain.state"] == "running"
    service.start()
    until_tag(owner, versions[2], "done")
    assert len(numbers(owner) - before) == 1


@pytest.mark.outage
def test_killed_after_training_registered_its_version_the_version_is_used(owner, versions, service, behaviour):
    behaviour.write_text("orphan")
    before = numbers(owner)
    owner.tag(versions[1], "retrain", "requested")
    (new,) = until(lambda: numbers(owner) - before, "registered")
    service.stop(signal.SIGKILL)
    service.start()
    assert until_tag(owner, versions[1], "done")["retrained_as"] == str(new)
    assert numbers(owner) - before == {new}


def test_sigterm_ends_the_child_and_the_service_at_once(owner, versions, service, behaviour):
    behaviour.write_text("wait")
    owner.tag(versions[0], "retrain", "requested")
    child = until(lambda: child_of(service), "training child")
    until_tag(owner, versions[0], "running")
    assert service.stop(signal.SIGTERM) == 0
    assert gone(child) or os.waitpid(child, os.WNOHANG)
    behaviour.write_text("again")
    service.start()
    until_tag(owner, versions[0], "done")
