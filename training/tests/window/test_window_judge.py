"""Splits, figures, every regressor, and what is registered."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from oal_training.errors import TrainingError
from oal_training.tracking import Tracking
from oal_training.window import dataset, model, report, validation
from oal_training.window.regressors import REGRESSORS, SVR_ROWS, XGBOOST, Thinned

SAMPLES = Path(__file__).resolve().parents[3] / "lab/captures/window.parquet"


@pytest.fixture(scope="module")
def samples() -> dataset.Dataset:
    return dataset.read(SAMPLES)


@pytest.fixture(scope="module")
def few(samples) -> dataset.Dataset:
    return samples.of("learning2")[::8]


def test_no_flow_and_no_second_is_on_both_sides_of_a_split(samples):
    for train, test in validation.by_time(samples):
        for name in ("learning", "learning2"):
            mine = samples.capture == name
            assert samples.ts_us[train & mine].max() + validation.EMBARGO_US <= samples.ts_us[test & mine].min()
        assert not set(samples.flow[train].tolist()) & set(samples.flow[test].tolist())
    judged = np.zeros(len(samples), int)
    for train, test in validation.by_flow(samples):
        assert not set(samples.flow[train].tolist()) & set(samples.flow[test].tolist())
        judged += test
    assert (judged == 1).all(), "each sample is judged once"


def test_figures_of_a_hand_made_case(few):
    data = dataclasses.replace(
        few[:4], y=np.array([100.0, 200.0, 300.0, 400.0]), flow=np.array([1, 1, 2, 3], np.uint64)
    )
    s = validation.score(data, np.array([110.0, 150.0, 300.0, -5.0]))
    assert s.r2 == pytest.approx(1 - (100 + 2500 + 0 + 160_000) / 50_000)
    assert (s.relative_median, s.relative_p90) == (pytest.approx((0.1 + 0.25) / 2), pytest.approx(0.25 + 0.7 * 0.75))
    assert (s.mae_bytes, s.n, s.flows) == (pytest.approx(460 / 4), 4, 3)
    assert validation.score(data, data.y).r2 == 1


@pytest.mark.parametrize("name", list(REGRESSORS))
def test_every_regressor_learns_something_of_real_flows(name, few):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = validation.validate(REGRESSORS[name], few, "time")
    assert found.r2 > validation.validate(report.Mean, few, "time").r2 + 0.05
    assert found.n > 500


def test_what_the_ap_sees_tells_more_than_unacknowledged_bytes_alone(samples):
    data = samples.of("learning")
    full, una = (validation.validate(REGRESSORS["xgboost"], d, "time") for d in (data, data.only(validation.UNA)))
    assert full.r2 > una.r2 + 0.1 and full.relative_median < una.relative_median


def test_too_little_is_refused(few):
    with pytest.raises(TrainingError, match="too few samples"):
        validation.validate(REGRESSORS["linear"], few[:150], "time")
    with pytest.raises(TrainingError, match="too few samples: 150"):
        model.fit(few[:150])
    with pytest.raises(TrainingError, match="second capture"):
        validation.validate(REGRESSORS["linear"], few, "network")


def test_a_thinned_fit_uses_rows_of_the_whole_time():
    class Seen:
        def fit(self, x, y):
            self.y = y

    seen = Thinned(Seen(), 10)
    seen.fit(np.zeros((95, 1)), np.arange(95))
    assert len(seen.model.y) == 10 and seen.model.y[-1] >= 90
    assert SVR_ROWS >= 1000


def test_the_table_begins_with_the_papers_figure_and_says_how_it_was_split(few):
    lines = [report.paper(), *(report.row(*r) for r in report.scores(few, None, ["linear"], ["time"]))]
    assert [line["regressor"] for line in lines] == ["paper's best", "mean", "linear", "linear"]
    assert lines[0]["split"] == "random rows" and lines[0]["R²"] == report.PAPER_R2
    text = report.markdown(lines)
    assert text.splitlines()[0].count("|") == text.splitlines()[-1].count("|") == 8


def test_the_model_fits_an_ap_and_its_files_say_what_it_takes(few, tmp_path):
    import xgboost

    fitted = model.fit(few)
    model.save(fitted, few, tmp_path)
    said = json.loads((tmp_path / "inputs.json").read_text())
    booster = xgboost.Booster(model_file=str(tmp_path / "model.ubj"))
    assert booster.num_features() == len(said["inputs"]) == len(few.names)
    assert booster.num_boosted_rounds() <= 100 and XGBOOST["max_depth"] <= 5
    assert np.allclose(booster.predict(xgboost.DMatrix(few.x)), fitted.predict(few.x))
    assert (tmp_path / "feature_program.oalf").read_bytes()


def test_a_run_names_its_data_and_registration_refuses_one_that_cannot(few, tmp_path):
    made_by = model.lineage(few)
    assert made_by.missing() == [] or made_by.missing() == ["git_revision"]
    assert "learning2.sender.jsonl.gz" in made_by.query and made_by.rows == few.source["rows"]
    nameless = dataclasses.replace(few, source=few.source | {"file_sha256": "", "schema_revision": 0})
    with pytest.raises(TrainingError, match="data_sha256.*schema_revision|schema_revision.*data_sha256"):
        model.log(Tracking("http://127.0.0.1:1"), None, nameless, {}, "", "window")
    foreign = dataclasses.replace(few, feature_hash=0x123456789ABCDEF0)
    with pytest.raises(TrainingError, match="123456789abcdef0 is none of the contract's"):
        model.log(Tracking("http://127.0.0.1:1"), None, foreign, {}, "", "window")


def test_what_is_registered_can_be_compiled_from_its_run(few, mlflow_uri, tmp_path, monkeypatch):
    """A real MLflow (its library on a database file): the version's run has the files that the registry needs."""
    import mlflow
    import xgboost

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OAL_GIT_REVISION", "test")
    fitted = model.fit(few, n_estimators=5)
    result = model.log(Tracking(mlflow_uri), fitted, few, {"r2_by_time": 0.5}, "| a |", "compiled")
    client = mlflow.MlflowClient()
    version = client.get_model_version("compiled", str(result["version"]))
    assert (result["version"], version.run_id) == (1, result["run_id"])
    tags = client.get_run(result["run_id"]).data.tags
    assert (
        tags["oal.feature_hash"] == f"{few.feature_hash:016x}"
        and tags["oal.rows"] == str(few.source["rows"])
        and tags["oal.data_sha256"] == few.source["file_sha256"]
    )
    folder = Path(client.download_artifacts(result["run_id"], ""))
    assert json.loads((folder / "inputs.json").read_text())["inputs"] == list(few.inputs)
    assert (folder / "feature_program.oalf").stat().st_size > 1000
    booster = xgboost.Booster(
        model_file=str(next(Path(mlflow.artifacts.download_artifacts("models:/compiled/1")).glob("*.ubj")))
    )
    assert np.allclose(booster.predict(xgboost.DMatrix(few.x[:50])), fitted.predict(few.x[:50]))
