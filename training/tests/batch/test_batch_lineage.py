"""No version without its data, its code and its environment; a version can be repeated from what MLflow keeps of it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oal_training import lineage, policies
from oal_training.arguments import instant
from oal_training.batch import experiment, versions
from oal_training.cli import main
from oal_training.errors import TrainingError
from oal_training.lineage import Lineage
from oal_training.stored.programs import known_programs

ROOT = Path(__file__).resolve().parents[3]
LEARNING = ROOT / "lab" / "captures" / "learning.items.parquet"
TREE = ROOT / "policies" / "rwnd-fair" / "experiment.yaml"


def client(uri):
    from mlflow import MlflowClient

    return MlflowClient(uri, uri)


def complete(learning) -> Lineage:
    return Lineage.of(learning.source)


def test_a_run_on_a_committed_capture_can_name_everything(learning):
    found = complete(learning)
    assert found.missing() == []
    found.require()
    assert found.rows == len(learning) and found.query == "learning.items.parquet"
    assert found.feature_hash in {f"{h:016x}" for h in known_programs()}
    assert {"python", "scikit-learn", "requirements.txt"} <= set(found.environment)


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Lineage)])
def test_registration_refuses_when_one_is_missing(learning, name):
    there = complete(learning)
    without = dataclasses.replace(there, **{name: type(getattr(there, name))()})
    with pytest.raises(TrainingError, match=f"not registered: the run cannot name its {name}"):
        without.require()


@pytest.mark.parametrize(("name", "value"), [("feature_hash", "369def"), ("data_sha256", "abc")])
def test_a_hash_that_is_none_counts_as_missing(learning, name, value):
    assert dataclasses.replace(complete(learning), **{name: value}).missing() == [name]


def test_code_that_is_in_no_commit_registers_nothing(learning):
    dirty = dataclasses.replace(complete(learning), git_revision="8d745fc-dirty")
    with pytest.raises(TrainingError, match="cannot name its git_revision.* whose files are committed"):
        dirty.require()


def test_git_revision_says_when_files_differ_from_it(tmp_path, monkeypatch):
    monkeypatch.delenv("OAL_GIT_REVISION")
    git = lambda *a: subprocess.run(
        ["git", "-C", tmp_path, "-c", "user.name=t", "-c", "user.email=t@t", *a],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    git("init", "-q")
    (tmp_path / "f").write_text("1")
    git("add", "f")
    git("commit", "-q", "-m", "f")
    monkeypatch.setattr(lineage, "ROOT", tmp_path)
    assert lineage.git_revision() == git("rev-parse", "HEAD")
    (tmp_path / "f").write_text("2")
    assert lineage.git_revision() == git("rev-parse", "HEAD") + "-dirty"
    monkeypatch.setattr(lineage, "ROOT", tmp_path / "nowhere")
    assert lineage.git_revision() == ""
    monkeypatch.setenv("OAL_GIT_REVISION", "v1.2.3")
    assert lineage.git_revision() == "v1.2.3"


def test_fit_registers_a_tree_that_the_registry_can_read(mlflow_uri, learning, tmp_path, capsys):
    import mlflow.sklearn

    result = tmp_path / "result.json"
    assert (
        main(
            [
                "fit",
                str(TREE),
                "--source",
                str(LEARNING),
                "--tracking-uri",
                mlflow_uri,
                "--register",
                "first",
                "--result",
                str(result),
                "--out",
                str(tmp_path / "out"),
            ]
        )
        == 0
    )
    made = json.loads(result.read_text())
    assert made["version"] == 1 and "registered as first/1" in capsys.readouterr().out
    found = client(mlflow_uri)
    run = found.get_run(made["run_id"])
    assert {f"oal.{f.name}" for f in dataclasses.fields(Lineage)} <= set(run.data.tags)
    assert run.data.tags["oal.data_sha256"] == learning.source["file_sha256"]
    assert run.data.metrics["time.onset_ap"] > run.data.metrics["time.persistence_onset_ap"] > 0
    files = {a.path for a in found.list_artifacts(made["run_id"])}
    assert {"experiment.yaml", "feature_program.oalf", "features.json", "report"} <= files
    program = Path(found.download_artifacts(made["run_id"], "feature_program.oalf", str(tmp_path))).read_bytes()
    assert program == known_programs()[learning.feature_hash].oalf
    model = Path(
        mlflow.artifacts.download_artifacts(
            "models:/first/1", dst_path=str(tmp_path / "model"), tracking_uri=mlflow_uri
        )
    )
    assert (model / "model.skops").is_file() and not list(model.glob("*.pkl"))
    tree = mlflow.sklearn.load_model(str(model))
    assert (
        type(tree).__name__ == "DecisionTreeClassifier"
        and tree.tree_.node_count <= 31
        and set(tree.classes_) == {0, 1, 2, 3}
    )
    assert np.allclose(tree.predict_proba(learning.x[:50]).sum(axis=1), 1)
    for picture in ("time-onset.png", "time-classes.png", "time-reliability.png", "time-confusion.png"):
        assert (tmp_path / "out" / picture).read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out" / "report.json").read_text())["source"]["rows"] == len(learning)


def test_fit_of_a_policy_takes_its_experiment_and_registers_under_its_name(mlflow_uri, fitted):
    found = client(mlflow_uri)
    assert f"registered as congestion/{fitted.version}" in fitted.printed
    assert found.get_model_version("congestion", str(fitted.version)).tags["policy"] == "rwnd-fair"
    tags = found.get_run(fitted.run_id).data.tags
    assert tags["policy"] == json.loads(tags["oal.source"])["policy"] == "rwnd-fair"
    assert tags["oal.experiment"] == experiment.load(TREE).name


def test_a_policy_that_is_none_and_items_of_another_are_refused(mlflow_uri, learning, monkeypatch, capsys):
    assert main(["fit", "--policy", "nothing", "--source", str(LEARNING)]) == 1
    assert "there is no policy nothing; there are rwnd-fair" in capsys.readouterr().err
    assert main(["fit", "--policy", "uplink-cap", "--source", str(LEARNING)]) == 1
    assert "policy uplink-cap learns nothing: its law backlog_cap needs no model" in capsys.readouterr().err
    monkeypatch.setattr(policies, "feature_hash", lambda policy: 7)
    words = ["fit", "--policy", "rwnd-fair", "--source", str(LEARNING), "--tracking-uri", mlflow_uri]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert f"the items are of feature program {learning.feature_hash:016x}, and policy rwnd-fair takes {7:016x}" in said


def test_a_forest_is_not_registered_and_says_what_to_do(mlflow_uri, capsys):
    assert (
        main(
            [
                "fit",
                str(ROOT / "training" / "experiments" / "knn.yaml"),
                "--source",
                str(LEARNING),
                "--tracking-uri",
                mlflow_uri,
                "--register",
                "congestion",
            ]
        )
        == 1
    )
    assert "distil this model" in capsys.readouterr().err


def test_a_table_that_is_not_oals_is_not_registered(mlflow_uri, learning, tmp_path, capsys):
    import pandas as pd

    pd.DataFrame({"ap": learning.group, "t": learning.ts_us, "y": learning.y, "m": learning.x[:, 0]}).to_parquet(
        tmp_path / "f.parquet"
    )
    (tmp_path / "e.yaml").write_text("name: e\nmodel: {kind: decision_tree}\ncolumns: {group: ap, time: t, label: y}\n")
    assert (
        main(
            [
                "fit",
                str(tmp_path / "e.yaml"),
                "--source",
                str(tmp_path / "f.parquet"),
                "--tracking-uri",
                mlflow_uri,
                "--register",
                "congestion",
            ]
        )
        == 1
    )
    assert "not registered: the run cannot name its schema_revision, feature_hash" in capsys.readouterr().err


def test_what_is_not_there_is_said_plainly(mlflow_uri, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    password = tmp_path / "p"
    password.write_text("x")
    config = tmp_path / "c.yaml"
    config.write_text(
        json.dumps(
            {
                "clickhouse": {
                    "url": "http://127.0.0.1:1",
                    "user": "analyst",
                    "password_file": str(password),
                    "database": "oal",
                }
            }
        )
    )
    for arguments, says in (
        (["fit", str(TREE)], "where are the items?"),
        (["fit", str(TREE), "--config", str(config)], "ClickHouse at http://127.0.0.1:1 as analyst"),
        (["fit", "nothing.yaml", "--source", str(LEARNING)], "there are corpus.yaml"),
        (
            ["fit", "--retrain", "congestion/99", "--tracking-uri", mlflow_uri, "--config", str(config)],
            "reading congestion/99",
        ),
        (["fit", "--retrain", "congestion", "--tracking-uri", mlflow_uri], "names no version"),
        (
            ["fit", str(TREE), "--source", str(LEARNING), "--tracking-uri", "http://127.0.0.1:1"],
            "MLflow: http://127.0.0.1:1",
        ),
        (["fit", str(TREE), "--source", str(LEARNING), "--register", "x"], "--register needs MLflow"),
    ):
        assert main(arguments) == 1, arguments
        said = capsys.readouterr().err.strip().splitlines()[-1]
        assert said.startswith("oal-train: ") and says in said


@pytest.mark.parametrize(
    ("text", "us"),
    [("1970-01-01T00:00:01", 1_000_000), ("1970-01-01T01:00:00+01:00", 0), ("2026-11-21", 1795219200000000)],
)
def test_times_are_utc_unless_they_say_otherwise(text, us):
    assert instant(text) == us


def test_items_of_the_first_features_of_a_policy_may_be_registered_under_it():
    whole = policies.feature_hash("rwnd-fair")
    first = next(h for h, p in known_programs().items() if p.described["name"] == "congestion" and h != whole)
    assert versions.begins(first, whole) and versions.begins(whole, whole)
    assert not versions.begins(7, whole) and not versions.begins(whole, first)
