"""MLflow: what is logged on a real server, and that a server which is away or slow delays nothing."""

from __future__ import annotations

import dataclasses
import socket
import time

import numpy as np
import pytest
from conftest import until
from oal_schema.tree import Tree
from oal_training.online import tracking
from oal_training.online.config import Mlflow
from oal_training.online.decision import Decision
from oal_training.online.metrics import Metrics
from oal_training.online.mlflow_client import Client
from oal_training.online.score import Score

LEAF = Tree(
    np.array([-1], np.int32),
    np.zeros(1, np.int64),
    np.zeros(1, np.int32),
    np.zeros(1, bool),
    np.zeros(1, np.uint8),
    np.zeros((1, 3), np.uint16),
    7,
)
DAY_US = 86_400_000_000
NOON_US = 1_800_014_400_000_000 // DAY_US * DAY_US + DAY_US // 2
DECISION = Decision(
    "ap-1",
    "site-1",
    NOON_US,
    True,
    "better",
    items=1000,
    candidate=Score(0.6, 0.5),
    persistence=Score(0.3, 0.4),
    feature_hash=7,
    tree=LEAF,
)


@pytest.fixture
def mlflow(platform):
    return platform.mlflow


def client(server, user: str = "trainer") -> Client:
    return Client(Mlflow(server.url, user, str(server.password_file(user))))


def logged(metrics: Metrics) -> int:
    return int(
        next(
            line.split()[1]
            for line in metrics.text().splitlines()
            if line.startswith("oal_trainer_mlflow_logged_total ")
        )
    )


def dropped(metrics: Metrics) -> int:
    return int(
        next(
            line.split()[1]
            for line in metrics.text().splitlines()
            if line.startswith("oal_trainer_mlflow_dropped_total ")
        )
    )


def test_one_run_a_day_with_metrics_over_time_and_the_latest_trees(mlflow, monkeypatch):
    monkeypatch.setattr(tracking, "TREES_KEPT", 2)
    said: list[str] = []
    for start in (0, 3):  # the second time as after a restart: the run goes on
        metrics = Metrics()
        tracker = tracking.Tracking(client(mlflow), metrics, said.append, "trainer-x")
        tracker.start()
        for k in range(start, start + 3):
            tracker.offer(
                tracking.entry(
                    dataclasses.replace(DECISION, ts_us=NOON_US + k * 1_000_000),
                    k + 1,
                    version=k + 1,
                    bundle_hash=f"{k:064x}",
                )
            )
        until(lambda: f"three entries; it says {said}", lambda: logged(metrics) == 3)
        run = tracker.run_id("ap-1")
        tracker.stop()
    api = client(mlflow)
    experiment = api.experiment("online")
    assert run and api.find_run(experiment, {"oal.ap_id": "ap-1"}) == run
    history = mlflow.api(f"metrics/get-history?run_id={run}&metric_key=candidate_onset_ap")["metrics"]
    assert [m["value"] for m in history] == [0.6] * 6 and len({m["timestamp"] for m in history}) == 6
    assert sorted(api.artifacts(run, "trees")) == [
        f"trees/{k + 1:08d}-{'0' * 16}.json" for k in (4, 5)
    ], "of six shipped trees the latest two are kept"
    tags = {t["key"]: t["value"] for t in mlflow.api(f"runs/get?run_id={run}")["run"]["data"]["tags"]}
    assert (
        tags["oal.feature_hash"] == f"{7:016x}"
        and tags["oal.schema_revision"]
        and tags["oal.git_revision"]
        and tags["oal.environment"]
    )
    # The next day has a run of its own, and the first is finished.
    tracker = tracking.Tracking(client(mlflow), metrics, said.append, "trainer-x")
    tracker._runs = {"ap-1": ("2000-01-01", run)}
    tracker.start()
    tracker.offer(tracking.entry(dataclasses.replace(DECISION, ts_us=NOON_US + DAY_US, shipped=False), 0))
    until(lambda: f"an entry; it says {said}", lambda: logged(metrics) == 4)
    assert tracker.run_id("ap-1") != run
    assert mlflow.api(f"runs/get?run_id={run}")["run"]["info"]["status"] == "FINISHED"
    tracker.stop()
    assert said == []


def test_a_wrong_password_is_tried_again_not_dropped(mlflow, tmp_path):
    (tmp_path / "password").write_text("wrong")
    said: list[str] = []
    metrics = Metrics()
    tracker = tracking.Tracking(
        Client(Mlflow(mlflow.url, "trainer", str(tmp_path / "password"))), metrics, said.append, "x"
    )
    tracker.start()
    tracker.offer(tracking.entry(dataclasses.replace(DECISION, ap_id="ap-2"), 1, 1, "00"))
    until("it is said", lambda: any("401" in line for line in said))
    (tmp_path / "password").write_text(mlflow.password_file("trainer").read_text())
    until("logged", lambda: logged(metrics) == 1)
    assert dropped(metrics) == 0
    tracker.stop()


def test_a_server_that_never_answers_delays_nothing_and_what_does_not_fit_is_counted(tmp_path):
    (tmp_path / "password").write_text("x")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        metrics = Metrics()
        tracker = tracking.Tracking(
            Client(Mlflow(f"http://127.0.0.1:{silent.getsockname()[1]}", "u", str(tmp_path / "password"))),
            metrics,
            print,
            "x",
        )
        tracker.start()
        entry = tracking.entry(DECISION, 1, 1, "00")
        before = time.thread_time()
        for _ in range(tracking.WAITING + 501):
            tracker.offer(entry)
        assert (
            time.thread_time() - before < 1
        ), "CPU of 2,500 offers; none of them waited for an answer, or this would not end"
        assert dropped(metrics) in (500, 501)
        tracker.stop(0.1)


def test_an_ap_is_logged_every_ten_seconds_and_when_a_tree_is_shipped(tmp_path):
    tracker = tracking.Tracking(Client(Mlflow("http://127.0.0.1:9", "u", "p")), Metrics(), print, "x")
    held = dataclasses.replace(DECISION, shipped=False)
    assert tracker.wanted(held)
    tracker.offer(tracking.entry(held, 0))
    assert not tracker.wanted(dataclasses.replace(held, ts_us=held.ts_us + 9_999_999))
    assert tracker.wanted(dataclasses.replace(held, ts_us=held.ts_us + 10_000_000))
    assert tracker.wanted(dataclasses.replace(DECISION, ts_us=held.ts_us + 1))


def test_what_is_kept_of_aps_goes_with_them(tmp_path):
    tracker = tracking.Tracking(Client(Mlflow("http://127.0.0.1:9", "u", "p")), Metrics(), print, "x")
    for n in range(50):
        tracker.offer(tracking.entry(dataclasses.replace(DECISION, ap_id=f"ap-{n}"), 0))
    tracker.forget([f"ap-{n}" for n in range(49)])
    assert list(tracker._last) == ["ap-49"]


def test_runs_of_days_ago_are_not_kept(tmp_path, monkeypatch):
    tracker = tracking.Tracking(Client(Mlflow("http://127.0.0.1:9", "u", "p")), Metrics(), print, "x")
    tracker._experiment = "1"
    for name, answer in (("find_run", None), ("create_run", "r"), ("finish_run", None)):
        monkeypatch.setattr(tracker._client, name, lambda *_, answer=answer: answer, raising=True)
    for day in range(5):
        at = dataclasses.replace(DECISION, ap_id=f"ap-{day}", ts_us=NOON_US + day * DAY_US)
        tracker._run(tracking.entry(at, 0))
    assert set(tracker._runs) == {"ap-3", "ap-4"}
