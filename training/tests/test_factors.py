"""Kendall's tau-b and information gain: right on what is known, honest about chance and blocks, beside the paper's."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from oal_training.cli import main
from oal_training.factors import association, measures, paper, report
from oal_training.stored.items import Items
from scipy.stats import kendalltau

CAPTURES = Path(__file__).resolve().parents[2] / "lab/captures"
CLASSES = ("Good", "Acceptable", "Poor", "Bad")


def items(n: int = 3000, seed: int = 1, names=("txq_drops_1s", "noise_dbm", "channel_busy_ms", "other")) -> Items:
    """Loss that wanders; the first column counts it with noise, the second is constant, the third wanders by itself."""
    rng = np.random.default_rng(seed)
    walk = lambda: np.convolve(rng.normal(0, 1, n + 99), np.ones(100) / 10, "valid")
    loss = np.clip(walk() * 0.1, 0, 1)
    x = np.column_stack([loss * 100 + rng.normal(0, 1, n), np.full(n, -90), walk(), np.full(n, np.nan)])
    ts = 1_800_000_000_000_000 + np.arange(n, dtype=np.int64) * 100_000
    y = np.digitize(loss, (0.01, 0.05, 0.12))
    return Items(x, names, np.full(n, "ap"), ts, y, y, loss, CLASSES, 2, 200_000, 1_000_000)


def test_tau_of_a_table_is_scipys():
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 7, 400), rng.integers(0, 5, 400)
    y = np.where(rng.random(400) < 0.5, np.minimum(x, 4), y)
    counts = association.tables(x, y, np.zeros(400, int), 1)
    assert association.tau_b(counts)[0] == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)
    assert np.isnan(association.tau_b(association.tables(x, np.zeros(400, int), np.zeros(400, int), 1))[0])


def test_gain_is_the_entropy_that_goes():
    counts = np.array([[10.0, 0], [0, 10]])
    assert association.information_gain(counts) == pytest.approx(1.0)
    assert association.information_gain(np.full((2, 2), 5.0)) == pytest.approx(0.0)


def test_a_metric_that_follows_the_loss_is_told_from_one_that_only_wanders():
    every = items()
    found = {row.column: row for row in measures.rows(every, 100)}
    mine, idle = found["txq_drops_1s"].now, found["channel_busy_ms"].now
    assert mine.tau_span[0] < mine.tau < mine.tau_span[1] and mine.tau_span[0] > 0.3
    assert mine.tau == pytest.approx(kendalltau(every.x[:, 0], every.loss_now).statistic)
    assert mine.gain > mine.chance and mine.gain_span[0] > 0
    # Neighbours are alike: by a formula for independent rows this one would "matter"; by blocks it does not.
    assert idle.tau_span[0] < 0 < idle.tau_span[1] and idle.gain <= idle.chance


def test_the_papers_rows_stand_in_its_order_and_what_we_lack_is_a_dash():
    every = items()
    found = measures.rows(every, 20)
    assert [row.paper for row in found[: len(paper.TABLE_2)]] == list(paper.TABLE_2)
    text = report.markdown(every, found, measures.loss(every, 20))
    assert "| noise | - | -0.139 | - |" in text and "`noise_dbm`" in text.split("one value only")[1]
    assert "| dropped in all queues | `txq_drops_1s` * | 0.311 |" in text


def test_loss_ahead_is_the_loss_now_of_a_horizon_and_a_window_later():
    every = items(300)
    ahead = measures.loss_ahead(every)
    assert np.array_equal(ahead[:288], every.loss_now[12:]) and np.isnan(ahead[288:]).all()


def test_access_points_of_two_files_are_not_one():
    one, other = (items(100, seed) for seed in (1, 2))
    assert {g for i in measures.apart([("a", one), ("b", other)]) for g in i.groups} == {"a: ap", "b: ap"}


def logged(uri: str, experiment: str, said: str):
    """The run of MLflow that a command says, which must be of that experiment, and the names of its report's files."""
    from mlflow import MlflowClient

    client = MlflowClient(uri, uri)
    run = client.get_run(said.split("MLflow run ")[1].split()[0])
    assert run.info.experiment_id == client.get_experiment_by_name(experiment).experiment_id
    return run, {Path(f.path).name for f in client.list_artifacts(run.info.run_id, "report")}


def test_tables_and_pictures_are_written_and_kept_in_mlflow(tmp_path, mlflow_uri, capsys):
    assert main(["factors", "--rounds", "20", "--out", str(tmp_path), "--tracking-uri", mlflow_uri]) == 0
    said = capsys.readouterr().out
    assert "# What goes with congestion loss" in said
    names = {"factors.md", "factors.json", "loss.png", "distributions.png"}
    run, files = logged(mlflow_uri, "factors", said)
    assert {f.name for f in tmp_path.iterdir()} == files == names
    made = json.loads((tmp_path / "factors.json").read_text())
    assert made["source"]["aps"] == 2 and made["loss"]["percentiles"]["50"]["value"] < 0.05
    assert 0 < run.data.metrics["tau.unacked_bytes"] < 1 and run.data.metrics["loss.mean"] > 0
    assert run.data.params["rounds"] == "20" and run.data.tags["mlflow.source.name"] == "oal-train factors"


def test_a_comparison_of_models_is_kept_in_mlflow(mlflow_uri, capsys):
    path = str(CAPTURES / "learning.items.parquet")
    assert main(["compare", "--items", path, "--models", "decision_tree", "--no-window", "--tracking-uri",
                 mlflow_uri]) == 0  # fmt: skip
    run, files = logged(mlflow_uri, "compare", capsys.readouterr().out)
    assert {"report.md", "report.json"} < files and any(name.endswith(".png") for name in files)
    assert {f"accuracy.{model}" for model in ("persistence", "decision_tree")} < set(run.data.metrics)


def test_the_senders_window_is_kept_in_mlflow(mlflow_uri, capsys, monkeypatch):
    from oal_training.window import paper

    monkeypatch.setattr(paper, "regressions", partial(paper.regressions, names=("Linear",)))  # all take a minute
    assert main(["window", "paper", "--tracking-uri", mlflow_uri]) == 0
    run, files = logged(mlflow_uri, "factors", capsys.readouterr().out)
    assert {"window.md", "window.json", "window.png"} <= files and run.data.metrics


def test_without_an_mlflow_that_answers_nothing_is_begun(capsys):
    assert main(["factors", "--rounds", "20", "--tracking-uri", "http://127.0.0.1:9"]) == 1
    assert "MLflow: http://127.0.0.1:9" in capsys.readouterr().err
