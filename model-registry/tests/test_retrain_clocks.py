"""Which version a run made that was cut off, told without any clock; requests that come while a run ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from oal_registry.retrain import AS_TAG, FROM_TAG, STATE_TAG, TAG, Retraining
from oal_registry.status import Status

MODEL = "congestion"


class Registry:
    """MLflow whose clock stands at 1970; version 2 was made from version 1 long ago."""

    tracking_uri = "http://127.0.0.1:9"

    def __init__(self):
        self.tags: dict[int, dict[str, str]] = {1: {TAG: "requested"}, 2: {FROM_TAG: "1"}}
        self.calls = lambda: None  # what happens just before, and after, somebody else's call

    def version(self, _model, number):
        found = SimpleNamespace(version=str(number), tags=dict(self.tags[number]), creation_timestamp=number)
        self.calls()
        return found

    def versions(self, model, where=""):
        from_one = "retrained_from = '1'" in where
        conditions = {"tags.retrain LIKE": TAG, "tags.`retrain.state` = 'running'": STATE_TAG}
        asked = next((tag for text, tag in conditions.items() if text in where), "")
        self.calls()
        return [
            self.version(model, n)
            for n, tags in self.tags.items()
            if (not from_one or tags.get(FROM_TAG) == "1")
            and (not asked or tags.get(asked) in ("requested", "running"))
        ]

    def set_tag(self, _model, number, key, value):
        self.calls()
        self.tags[number][key] = value

    def delete_tag(self, _model, number, key):
        self.calls()
        self.tags[number].pop(key, None)


@pytest.fixture
def registry():
    return Registry()


def service(registry, folder, command=("/bin/sh", "-c", "sleep 600")) -> Retraining:
    """A service that has just started; its training command does nothing for long."""
    log = Status(lambda line: None)
    return Retraining(registry, (MODEL,), list(command), "none", folder, 600, log)


def test_a_version_that_a_run_registered_is_used_though_mlflows_clock_is_behind(registry, tmp_path):
    first = service(registry, tmp_path)
    assert first.step() == 1 and registry.tags[1][STATE_TAG] == "running"
    first.stop()
    registry.tags[3] = {FROM_TAG: "1"}
    second = service(registry, tmp_path)
    assert second.step() == 1
    assert (registry.tags[1][STATE_TAG], registry.tags[1][AS_TAG]) == ("done", "3")


def test_a_version_of_an_earlier_run_is_not_taken_for_it(registry, tmp_path):
    first = service(registry, tmp_path)
    first.step()
    first.stop()
    second = service(registry, tmp_path)
    try:
        assert second.step() == 1 and registry.tags[1][STATE_TAG] == "running" and AS_TAG not in registry.tags[1]
    finally:
        second.stop()


@pytest.mark.parametrize("moment", range(4))
def test_a_request_in_whatever_moment_of_a_run_and_of_its_end_is_run_after_it(registry, tmp_path, moment):
    """Somebody asks again at one of the calls that the service makes while its run ends."""
    here = service(registry, tmp_path, ("/bin/sh", "-c", "exit 1"))
    assert here.step() == 1 and TAG not in registry.tags[1], "begun, the request is taken"
    here._run.process.wait()
    calls = iter(range(99))
    asked = []

    def asks():
        if next(calls) == moment:
            registry.tags[1][TAG] = "requested"
            asked.append(moment)

    begun, begin = [], here._begin
    here._begin = lambda *run: (begun.append(run), begin(*run))
    registry.calls = asks
    for _ in range(4):
        here.step()
        if here._run:
            here._run.process.wait()
    assert asked and len(begun) == 1 and TAG not in registry.tags[1]
    assert registry.tags[1][STATE_TAG].startswith("failed: exit code 1")
