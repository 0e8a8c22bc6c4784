"""The table of all models on the committed capture, online trees among them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oal_training.batch import compare, online
from oal_training.cli import main

CAPTURES = Path(__file__).resolve().parents[3] / "lab" / "captures"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Answer of the command, and its report as numbers."""
    folder = tmp_path_factory.mktemp("compare")
    lines = compare.run(
        [CAPTURES / "learning.items.parquet"],
        CAPTURES / "learning2.items.parquet",
        ["decision_tree", "online"],
        4,
        0.6,
        None,
        folder,
        lambda _: None,
    )
    return lines, json.loads((folder / "report.json").read_text())["splits"]


def test_online_trees_beat_persistence_on_onset(table):
    models = table[1][next(name for name in table[1] if name.startswith("by time"))]["models"]
    mine, base = models["online trees"], models["persistence"]
    assert mine["onset_ap"] > base["onset_ap"] > base["onset_rate"]
    low, high = mine["interval_95"]["onset_ap_gain"]
    assert low < mine["onset_ap"] - base["onset_ap"] < high


def test_all_models_are_judged_on_the_same_items(table):
    for split in table[1].values():
        assert len({(m["items"], m["onsets"], m["candidates"]) for m in split["models"].values()}) == 1


def test_the_table_names_the_split_and_what_the_paper_did(table):
    lines = table[0]
    for words in (
        "Split by time: 4 test parts",
        "cut at whole 60 s",
        "decision tree, paper",
        "0.679 |",
        "random rows",
        "split at random",
        "learned on learning2.items.parquet alone",
    ):
        assert words in lines


def test_an_online_tree_predicts_only_after_it_was_shipped(learning):
    from oal_training.online import replay
    from oal_training.stored import parquet

    columns, _ = parquet.read_columns(CAPTURES / "learning.items.parquet")
    found = online.replay(columns, learning, None)
    assert found.shipped >= 1 and found.decisions > found.shipped
    first = learning.ts_us[np.argmax(found.covered)]
    assert first - learning.ts_us[0] > replay.PIPELINE_US + replay.PUSH_US + learning.embargo_us
    assert not found.covered[learning.ts_us < first].any()
    said = np.round(found.proba[:, 2:].sum(axis=1) * 1000)
    assert (
        said[found.covered] == found.congested_permille[found.covered]
    ).all(), "the probabilities are those of the tree in force at each item"


def test_the_same_network_is_not_another(capsys):
    path = str(CAPTURES / "learning.items.parquet")
    assert main(["compare", "--items", path, "--other", path, "--models", "decision_tree", "--no-window"]) == 1
    assert "it is not another network" in capsys.readouterr().err
    assert main(["compare", "--items", path, "--models", "oracle"]) == 1
    assert "--models: oracle is none of decision_tree" in capsys.readouterr().err
