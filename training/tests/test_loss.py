"""The sender's model of losses: its points, when its clusters are some, and the integers that it becomes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oal_schema.centroids import AIR, QUEUE, loads
from oal_training.cli import main
from oal_training.errors import TrainingError
from oal_training.lineage import Lineage
from oal_training.loss import clusters, points, report

ROOT = Path(__file__).resolve().parents[2]
SENDER = ROOT / "lab/captures/learning.sender.jsonl.gz"


def rows(*connections: tuple[int, list[tuple[int, int, int]]]) -> dict[str, np.ndarray]:
    """Of connections: (flow, samples of window in segments, round trip in µs, segments taken for lost)."""
    flat = [(flow, n, *sample) for flow, samples in connections for n, sample in enumerate(samples)]
    flow, n, cwnd, rtt, lost = (np.array(values) for values in zip(*flat))
    return {"flow_id": flow.astype(np.uint64), "ts_us": n * 20_000, "cwnd_bytes": cwnd * 1448, "rtt_us": rtt,
            "mss_bytes": np.full(len(n), 1448), "lost_pkts": lost}


def made(air: tuple[int, int], queue: tuple[int, int], spread: float = 0.1, n: int = 400) -> points.Points:
    draw = np.random.default_rng(3)
    samples = [(round(c * np.exp(draw.normal(0, spread))), round(r * np.exp(draw.normal(0, spread))), 0)
               for c, r in (air, queue) for _ in range(n)]
    return points.of_rows(rows((1, samples)), Lineage())


def test_a_point_is_the_mean_of_its_connections_last_samples():
    found = points.of_rows(rows((2, [(10, 30_000, 0), (20, 36_000, 0), (30, 42_000, 0), (40, 48_000, 0)]),
                                (1, [(8, 20_000, 0), (2, 90_000, 5), (10, 22_000, 0)])), Lineage())
    assert found.flow.tolist() == [1, 1, 2, 2, 2, 2]
    assert found.x.tolist() == [[8, 20_000], [9, 21_000], [10, 30_000], [15, 33_000], [20, 36_000], [30, 42_000]]
    with pytest.raises(TrainingError, match="nothing lost"):
        points.of_rows(rows((1, [(8, 20_000, 1)])), Lineage())


def test_clusters_that_are_some_become_integers_that_answer_as_they_do():
    found = made((12, 33_000), (80, 110_000))
    fitted = clusters.fit(found)
    assert not fitted.refused and fitted.silhouette > 0.8 and 3 < fitted.rtt_ratio < 3.7
    assert fitted.centres() == pytest.approx(np.array([[12, 33_000], [80, 110_000]]), rel=0.05)
    model = loads(fitted.integers().dumps(fitted.golden(found.x)))
    assert [model.answer([12, 33_000]), model.answer([80, 110_000])] == [AIR, QUEUE]
    assert {row["answer"] for row in json.loads(model.dumps(fitted.golden(found.x)))["golden"]} == {AIR, QUEUE}
    assert "The clusters are used." in report.markdown(fitted, 1)


@pytest.mark.parametrize(("air", "queue", "spread", "why"), [
    ((80, 33_000), (12, 110_000), 0.1, "the larger window has the smaller round trip"),
    ((12, 33_000), (80, 40_000), 0.05, "round trips differ"), ((40, 50_000), (40, 50_000), 0.3, "silhouette")])
def test_clusters_that_are_none_call_every_loss_congestion(air, queue, spread, why):
    fitted = clusters.fit(made(air, queue, spread))
    assert any(why in said for said in fitted.refused)
    assert fitted.integers().answer(list(air)) == fitted.integers().answer(list(queue)) == QUEUE
    assert "each loss is congestion" in report.markdown(fitted, 1)


def test_what_cannot_be_fitted_is_said():
    with pytest.raises(TrainingError, match="points; 100 are the least"):
        clusters.fit(made((12, 33_000), (80, 110_000), n=20))
    with pytest.raises(TrainingError, match="alike"):
        clusters.fit(points.of_rows(rows((1, [(10, 30_000, 0)] * 200)), Lineage()))


def test_the_command_writes_the_model_and_keeps_the_run_in_mlflow(tmp_path, mlflow_uri, capsys):
    assert main(["loss-cause", str(SENDER), "--out", str(tmp_path), "--tracking-uri", mlflow_uri]) == 0
    from mlflow import MlflowClient

    said = capsys.readouterr().out
    page = " ".join((ROOT / "policies/loss-cause/README.md").read_text().split())
    assert "10000 points of 907 connections; silhouette 0.36" in said and "the larger window has the smaller" in said
    assert "of 907 in the capture *learning* the larger window has the smaller round trip, and their silhouette is" \
           " 0.36" in page
    client = MlflowClient(mlflow_uri, mlflow_uri)
    run = client.get_run(said.split()[-1])
    assert client.get_experiment(run.info.experiment_id).name == "loss-cause"
    assert {file.path for file in client.list_artifacts(run.info.run_id, "report")} == {
        "report/centroids.json", "report/loss-cause.md"}
    assert run.data.params["n_init"] == "10" and len(run.data.tags["oal.data_sha256"]) == 64
    model = loads((tmp_path / "centroids.json").read_text())
    assert model.usable == bool(run.data.metrics["usable"])


def test_without_data_nothing_is_begun(capsys):
    assert main(["loss-cause"]) == 1 and "give files" in capsys.readouterr().err
