"""Which version a run made that was cut off, told without any clock."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from oal_registry.retrain import AS_TAG, FROM_TAG, TAG, Retraining
from oal_registry.status import Status

MODEL = "congestion"


class Registry:
    """MLflow whose clock stands at 1970; version 2 was made from version 1 long ago."""

    tracking_uri = "http://127.0.0.1:9"

    def __init__(self):
        self.tags: dict[int, dict[str, str]] = {1: {TAG: "requested"}, 2: {FROM_TAG: "1"}}

    def version(self, _model, number):
        return SimpleNamespace(version=str(number), tags=self.tags[number], creation_timestamp=number)

    def versions(self, model, where=""):
        from_one = "retrained_from = '1'" in where
        asked = "tags.retrain LIKE" in where
        return [
            self.version(model, n)
            for n, tags in self.tags.items()
            if (not from_one or tags.get(FROM_TAG) == "1") and (not asked or TAG in tags)
        ]

    def set_tag(self, _model, number, key, value):
        self.tags[number][key] = value


@pytest.fixture
def registry():
    return Registry()


def service(registry, folder) -> Retraining:
    """A service that has just started; its training command does nothing for long."""
    log = Status(lambda line: None)
    return Retraining(registry, (MODEL,), ["/bin/sh", "-c", "sleep 600"], "none", folder, 600, log)


def test_a_version_that_a_run_registered_is_used_though_mlflows_clock_is_behind(registry, tmp_path):
    first = service(registry, tmp_path)
    assert first.step() == 1 and registry.tags[1][TAG] == "running"
    first.stop()
    registry.tags[3] = {FROM_TAG: "1"}
    second = service(registry, tmp_path)
    assert second.step() == 1
    assert (registry.tags[1][TAG], registry.tags[1][AS_TAG]) == ("done", "3")


def test_a_version_of_an_earlier_run_is_not_taken_for_it(registry, tmp_path):
    first = service(registry, tmp_path)
    first.step()
    first.stop()
    second = service(registry, tmp_path)
    try:
        assert second.step() == 1 and registry.tags[1][TAG] == "running" and AS_TAG not in registry.tags[1]
    finally:
        second.stop()
