"""What MLflow's page shows of a version, and the version made again from what its run kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oal_training import lineage, tracking
from oal_training.batch import experiment, rebuild, run, stored_tree
from oal_training.cli import main
from oal_training.errors import TrainingError
from oal_training.tracking import Tracking

QUIET = lambda _line: None


@pytest.fixture
def client(mlflow_uri, fitted):
    from mlflow import MlflowClient

    return MlflowClient(mlflow_uri, mlflow_uri)


def test_the_run_shows_its_data_sets_by_digest_with_where_they_came_from(client, fitted, learning):
    found = client.get_run(fitted.run_id)
    sets = {one.tags[0].value: one.dataset for one in found.inputs.dataset_inputs}
    assert set(sets) == {"training", "evaluation"}
    for role, one in sets.items():
        kept, source, profile = found.data.tags[f"oal.{role}_sha256"], json.loads(one.source), json.loads(one.profile)
        assert kept.startswith(one.digest) and source["kept_as"] == f"data/{role}-{kept}.parquet"
        assert source["file_sha256"] == learning.source["file_sha256"] and one.source_type == "file"
        assert profile["access_points"] == ["learning"] and sum(profile["classes"].values()) == profile["items"]
        assert len(json.loads(one.schema)["mlflow_colspec"]) == learning.x.shape[1] + 1
    split = {role: json.loads(one.profile) for role, one in sets.items()}
    assert split["training"]["items"] > 2 * split["evaluation"]["items"] > 2000
    assert split["training"]["to_us"] + learning.embargo_us <= split["evaluation"]["from_us"]
    assert int(found.data.tags["oal.trained_until_us"]) == split["training"]["to_us"]
    assert {a.path for a in client.list_artifacts(fitted.run_id, "data")} == {
        json.loads(one.source)["kept_as"] for one in sets.values()}


def test_the_model_has_a_signature_with_names_and_an_example(mlflow_uri, fitted, learning):
    import mlflow

    mlflow.set_tracking_uri(mlflow_uri)
    mlflow.set_registry_uri(mlflow_uri)
    info = mlflow.models.get_model_info(f"models:/congestion/{fitted.version}")
    assert info.signature.inputs.input_names() == list(learning.names)
    assert info.signature.outputs.input_names() == ["class"]
    model = mlflow.pyfunc.load_model(f"models:/congestion/{fitted.version}")
    example = model.input_example
    assert list(example.columns) == list(learning.names) and len(example) == 3
    assert set(model.predict(example)) <= {0, 1, 2, 3}


def test_the_card_says_what_it_is_how_good_beside_rules_and_how_to_go_back(client, fitted, tmp_path):
    version = client.get_model_version("congestion", str(fitted.version))
    card = Path(client.download_artifacts(fitted.run_id, "model_card.md", str(tmp_path))).read_text()
    assert version.description == card and len(card) <= 5000
    for words in ("A decision tree of 15 nodes over ", "SHA-256 `", "Fitted on: 4", "Held out: 1",
                  "| time: persistence", "| time: constant", "| held_out: decision_tree", "## Limits",
                  "set `champion` on the version before", "oal-train rebuild", "a-revision"):
        assert words in card, words
    metrics = client.get_run(fitted.run_id).data.metrics
    assert metrics["held_out.onset_ap"] > metrics["held_out.persistence_onset_ap"] > 0


def test_a_version_is_made_again_byte_for_byte(mlflow_uri, fitted, capsys):
    assert main(["rebuild", "--version", f"congestion/{fitted.version}", "--tracking-uri", mlflow_uri]) == 0
    said = capsys.readouterr().out
    assert f"congestion/{fitted.version} was made again, byte for byte: SHA-256 " in said and "differs" not in said


def test_other_code_and_libraries_are_named(mlflow_uri, fitted, monkeypatch, capsys):
    monkeypatch.setenv("OAL_GIT_REVISION", "another")
    monkeypatch.setattr(lineage, "environment", lambda: {"scikit-learn": "0.1", "numpy": np.__version__})
    assert main(["rebuild", fitted.run_id, "--tracking-uri", mlflow_uri]) == 0
    said = capsys.readouterr().out
    assert "code: a-revision then, another now" in said and "scikit-learn: 1." in said and "then, 0.1 now" in said
    assert "numpy" not in said
    fit = run.fit
    monkeypatch.setattr(run, "fit", lambda items, *more: fit(items[np.arange(len(items) - 400)], *more))
    assert main(["rebuild", fitted.run_id, "--tracking-uri", mlflow_uri]) == 1
    assert "and what was made now is " in capsys.readouterr().out


def test_a_changed_byte_in_the_kept_data_is_refused(mlflow_uri, fitted, client, monkeypatch):
    place = Tracking(mlflow_uri)
    found = tracking.of_run(place, fitted.run_id)
    download = type(client).download_artifacts

    def damaged(self, run_id, name, folder):
        path = Path(download(self, run_id, name, folder))
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
        return str(path)

    monkeypatch.setattr(type(client), "download_artifacts", damaged)
    with pytest.raises(TrainingError, match=r"training-\w+.parquet is not what was kept"):
        rebuild.rebuild(place, found, QUIET)
    monkeypatch.undo()
    without = {k: v for k, v in found.tags.items() if k != "oal.training_sha256"}
    with pytest.raises(TrainingError, match="kept no training data"):
        rebuild.data(place, tracking.Origin("", 0, found.experiment, without, found.model_uri, found.run_id))
    other = found.tags | {stored_tree.HASH_TAG: "0" * 64}
    with pytest.raises(TrainingError, match="is not what its run logged"):
        rebuild.rebuild(place, tracking.Origin("", 0, found.experiment, other, found.model_uri, found.run_id), QUIET)


def test_the_content_of_a_tree_is_what_decides_its_answers(learning):
    spec = experiment.load(experiment.OWN)
    fit = lambda items: run.as_tree(run.fit(items, spec, QUIET))
    one, same, other = fit(learning), fit(learning), fit(learning[np.arange(3000)])
    assert stored_tree.content(one) == stored_tree.content(same) != stored_tree.content(other)
    same.tree_.value[same.tree_.node_count - 1, 0, 0] += 1e-9
    assert stored_tree.content(one) != stored_tree.content(same)
