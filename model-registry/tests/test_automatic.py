"""Retraining by schedule and by drift, on a clock of the test's own: when, by whom, and what becomes of it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from oal_registry import automatic, drift, retrain
from oal_registry.automatic import Automatic, looked, why
from oal_registry.errors import RegistryError
from oal_registry.mlflow_client import Gone
from oal_registry.status import Status

HOUR = 3600.0
DAY = 24 * HOUR
SETTINGS = automatic.Settings(every_s=7 * DAY, psi_above=0.25, psi_for_s=6 * HOUR, least_s=DAY, look_every_s=HOUR)
OFF = automatic.Settings(every_s=0, psi_above=0, psi_for_s=0, least_s=0, look_every_s=HOUR)
MODEL = "congestion"
STILL, MOVED = {"load": 0.05, "queue": 0.1}, {"load": 0.05, "queue": 0.4}


class Registry:
    """MLflow's part: versions with their tags and the time they were made, aliases."""

    tracking_uri = "http://127.0.0.1:9"

    def __init__(self, **aliases: int):
        self.tags: dict[int, dict[str, str]] = {1: {}}
        self.made_s = {1: 0.0}
        self.alias = {"champion": 1, **aliases}

    def add(self, number: int, made_s: float = 0.0, **tags: str) -> None:
        self.tags[number], self.made_s[number] = tags, made_s

    def aliases(self, model):
        return dict(self.alias) if model == MODEL else None

    def version(self, _model, number):
        if number not in self.tags:
            raise Gone(f"no version {number}")
        return SimpleNamespace(
            version=str(number), tags=dict(self.tags[number]), creation_timestamp=int(self.made_s[number] * 1000)
        )

    def versions(self, model, where=""):
        asked = "LIKE" in where
        running = "running" in where
        return [
            self.version(model, number)
            for number, tags in self.tags.items()
            if (not asked or retrain.TAG in tags) and (not running or tags.get(retrain.STATE_TAG) == "running")
        ]

    def set_tag(self, _model, number, key, value):
        self.tags[number][key] = value

    def delete_tag(self, _model, number, key):
        self.tags[number].pop(key, None)

    def set_alias(self, _model, alias, number):
        self.alias[alias] = number


class Clock:
    def __init__(self):
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def look(tags: dict[str, str], now_s: float, psi, settings=SETTINGS) -> None:
    for name, value in looked(settings, now_s, dict(tags), psi).items():
        if value is None:
            tags.pop(name, None)
        else:
            tags[name] = value


def automat(registry, clock, settings=SETTINGS) -> Automatic:
    return Automatic(registry, (MODEL,), settings, Status(lambda line: None), clock)


def test_an_old_champion_is_trained_anew_and_not_before():
    registry, clock = Registry(), Clock()
    service = automat(registry, clock)
    asked = []
    for hour in range(24 * 20):
        clock.s = hour * HOUR
        if service.step():
            asked.append(hour)
            assert registry.tags[1][automatic.BY_TAG] == "schedule" and "168 h" in registry.tags[1][automatic.WHY_TAG]
            registry.tags[1].pop(retrain.TAG)
            registry.tags[1] |= {retrain.STATE_TAG: "done", automatic.AT_TAG: f"{clock.s:.0f}"}
    assert asked == [168, 336], "every seven days, from the start of the last run"


def test_drift_must_last_and_what_is_not_known_does_not_count():
    tags: dict[str, str] = {}
    for hour in range(6):
        look(tags, hour * HOUR, MOVED)
        assert why(SETTINGS, 2 * DAY, tags, 0, 0) is None or hour == 6
    assert tags[automatic.PSI_TAG] == "0.40 of queue"
    look(tags, 6 * HOUR, MOVED)
    assert why(SETTINGS, 6 * HOUR, tags, -2 * DAY, 0) is None, "too soon after the last run"
    by, text = why(SETTINGS, 6 * HOUR, tags, -2 * DAY, -2 * DAY)
    assert by == "drift" and "0.40 of queue, above 0.25 for 6.0 h" in text
    assert why(SETTINGS, 10 * HOUR, tags, -2 * DAY, -2 * DAY) is None, "nobody has looked for hours"
    for between in (STILL, None):
        again = dict(tags)
        look(again, 7 * HOUR, between)
        assert automatic.SINCE_TAG not in again and (automatic.PSI_TAG in again) == (between is not None)
        look(again, 8 * HOUR, MOVED)
        assert why(SETTINGS, 8 * HOUR, again, -2 * DAY, -2 * DAY) is None, "it begins anew"
    look(tags, 20 * HOUR, MOVED)
    assert tags[automatic.SINCE_TAG] == f"{20 * HOUR:.0f}", "what lies between two looks so far apart is not known"


def test_nothing_is_asked_twice_nor_by_one_that_is_off():
    registry, clock = Registry(), Clock()
    clock.s = 100 * DAY
    assert automat(registry, clock, OFF).step() == 0
    service = automat(registry, clock)
    assert service.step() == 1
    for tag, state in ((retrain.TAG, "requested"), (retrain.STATE_TAG, "running")):
        registry.tags[1] = {tag: state}
        clock.s += 100 * DAY
        assert service.step() == 0
    registry.tags[1] = {retrain.STATE_TAG: "done"}
    registry.add(2, **{retrain.STATE_TAG: "running"})
    clock.s += DAY
    assert service.step() == 0, "another version of the model is under way"
    registry.tags[2][retrain.STATE_TAG] = "failed: too few items"
    registry.tags[2][automatic.AT_TAG] = f"{clock.s:.0f}"
    clock.s += DAY - 1
    assert service.step() == 0
    registry.alias = {}
    clock.s += 100 * DAY
    assert service.step() == 0, "there is no champion"


@pytest.mark.parametrize("there, by_hand, becomes", [(None, False, 3), (2, False, 3), (2, True, 2)])
def test_what_it_makes_is_challenger_and_never_champion(there, by_hand, becomes):
    registry = Registry(**({"challenger": there} if there else {}))
    registry.add(2, **({} if by_hand else {automatic.BY_TAG: "drift"}))
    registry.add(3)
    registry.tags[1] |= {automatic.BY_TAG: "schedule", automatic.WHY_TAG: "170 h"}
    automatic.hand_on(registry, MODEL, 1, 3)
    assert registry.alias == {"champion": 1, "challenger": becomes}
    assert registry.tags[3] == {automatic.BY_TAG: "schedule", automatic.WHY_TAG: "170 h"}


def test_what_a_person_asked_for_gets_no_alias():
    registry = Registry()
    registry.add(3)
    assert automatic.hand_on(registry, MODEL, 1, 3) == ""
    assert registry.alias == {"champion": 1} and registry.tags[3] == {}


def test_a_whole_run_leaves_no_trace_of_who_asked_for_the_next(tmp_path):
    registry = Registry()
    registry.tags[1] |= {automatic.BY_TAG: "drift", automatic.WHY_TAG: "PSI", retrain.TAG: "requested"}
    command = ["/bin/sh", "-c", 'while [ "$1" != --result ]; do shift; done; echo \'{"version": 2}\' > "$2"', "train"]
    service = retrain.Retraining(registry, (MODEL,), command, "none", tmp_path, 60, Status(lambda line: None))
    assert service.step() == 1 and automatic.AT_TAG in registry.tags[1]
    registry.add(2)
    service._run.process.wait(10)
    service.step()
    assert registry.tags[1][retrain.STATE_TAG] == "done" and automatic.BY_TAG not in registry.tags[1]
    assert registry.tags[2][automatic.BY_TAG] == "drift" and registry.alias["challenger"] == 2


FOUND = {
    "items": 5000,
    "all": MOVED,
    "aps": {"ap-1": {"items": 4000, "psi": {"load": 1.0, "queue": 0.0}}},
}


def looker(registry, clock, folder: Path, command: list[str]) -> tuple[drift.Drift, list]:
    told: list = []
    status = Status(lambda line: None)

    def tell(*rows) -> None:
        told.append(rows)

    return drift.Drift(registry, (MODEL,), command, "c.yaml", folder, SETTINGS, status, tell, clock), told


def finish(service: drift.Drift) -> int:
    service._process.wait(10)
    return service.step()


def test_a_look_becomes_rows_and_tags(tmp_path):
    registry, clock = Registry(), Clock()
    (tmp_path / "found.json").write_text(json.dumps(FOUND))
    script = f'echo "$*" > {tmp_path}/said; for last; do :; done; cp {tmp_path}/found.json "$last"'
    service, told = looker(registry, clock, tmp_path, ["/bin/sh", "-c", script, "train"])
    assert service.step() == 0 and service._process is None, "not at once"
    clock.s = drift.FIRST_S
    service.step()
    assert finish(service) == 1
    assert (tmp_path / "said").read_text().startswith("drift congestion/1 --from 24h --config c.yaml --tracking-uri")
    ((table, key, records),) = told
    assert (table, key) == ("feature_drift", MODEL)
    assert [[(r["ap_id"], r["feature"], r["psi"], r["items"]) for r in rows] for rows in records] == [
        [("", "load", 0.05, 5000), ("", "queue", 0.4, 5000)],
        [("ap-1", "load", 1.0, 4000), ("ap-1", "queue", 0.0, 4000)],
    ]
    assert registry.tags[1][automatic.SINCE_TAG] == "300"
    clock.s += HOUR - 1
    service.step()
    assert service._process is None, "an hour later"
    (tmp_path / "found.json").write_text(json.dumps({"items": 3, "all": None, "aps": {}}))
    clock.s += 1
    service.step()
    assert finish(service) == 1 and told[1][2] == [], "what is not known has no rows"
    assert set(registry.tags[1]) == {automatic.LOOKED_TAG}


def test_a_look_that_fails_says_nothing_of_the_features(tmp_path):
    registry, clock = Registry(), Clock()
    registry.tags[1] |= {automatic.SINCE_TAG: "5"}
    service, told = looker(registry, clock, tmp_path, ["/bin/sh", "-c", "echo ClickHouse is away; exit 1"])
    clock.s = drift.FIRST_S
    service.step()
    assert finish(service) == 1 and told == [] and registry.tags[1] == {automatic.SINCE_TAG: "5"}
    assert service.status.value("oal_registry_drift_looks_total", result="failed") == 1
    service.command = ["/nowhere/oal-train"]
    clock.s += HOUR
    assert service.step() == 0 and service.status.value("oal_registry_drift_looks_total", result="failed") == 2
    service.command = ["/bin/sh", "-c", "sleep 600"]
    clock.s += HOUR
    service.step()
    clock.s += drift.TIMEOUT_S
    assert service.step() == 1 and service._process is None, "one that hangs is ended"


def test_settings_say_what_is_wrong():
    shipped = yaml.safe_load((Path(automatic.__file__).parents[2] / "registry.yaml").read_text())["retrain"]
    off = automatic.settings(shipped, "retrain")
    assert (off.every_s, off.psi_above) == (0, 0), "nothing is trained unasked out of the box"
    for change, words in (
        ({"every_s": -1}, "every_s is -1"),
        ({"every_s": "7d"}, "`every_s` must be"),
        ({"every": 1}, "unknown setting every"),
        ({"psi_above": 0.2, "look_every_s": 0}, "features are never compared"),
    ):
        with pytest.raises(RegistryError, match=words):
            automatic.settings(shipped | change, "retrain")
