"""Trees that access points learned online: what the trainer's own code ships of items of earlier runs, and which tree
an access point acts with.
"""
import dataclasses
import importlib.util
import json
import pathlib

import numpy as np
import pytest
from evaluate import bundle, learned, lessons, play
from evaluate.methods import method
from oal_registry import json_tree, programs

ROOT = pathlib.Path(__file__).resolve().parents[3]
WEB = method("cubic-fq+oal-online")


def synthetic():
    spec = importlib.util.spec_from_file_location("synthetic", ROOT / "training/tests/synthetic.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def runs(shuffled: bool) -> list:
    """Items of two access points in every run of SEEDS: what loads the first foresees its losses; the second's features
    say nothing, where `shuffled`.
    """
    program = programs.by_name()["congestion"]
    n, out = 120, []
    for ap in ("", "-1"):
        whole = synthetic().items(n * len(lessons.SEEDS), seed=3, features=len(program.features),
                                  feature_hash=program.feature_hash)
        chance = np.random.default_rng(1)
        for k, seed in enumerate(lessons.SEEDS):
            for at, one in enumerate(whole[k * n:(k + 1) * n]):
                features = chance.permutation(one.features).tolist() if shuffled and ap else one.features
                out.append(dataclasses.replace(one, ap_id=f"web-cubic-fq-{seed}{ap}", features=features,
                                               ts_us=1_700_000_000_000_000 + at * 100_000, loss_permille_resent=0))
    return out


def test_runs_of_the_same_time_follow_each_other():
    found = runs(False)
    ordered = lessons.in_order(found, {str(seed): 1_700_000_000_000_000 for seed in lessons.SEEDS})
    assert {one.ap_id for one in ordered} == {"0", "1"} and len(ordered) == len(found)
    times = [one.ts_us for one in ordered if one.ap_id == "1"]
    steps = np.diff(times)
    assert (steps > 0).all() and sorted(set(steps)) == [100_000, lessons.APART_US - 119 * 100_000]
    assert lessons.named("a-cubic-fq-903") == (903, "0") and lessons.named("a-cubic-fq-903-2") == (903, "2")


def test_a_tree_is_kept_where_the_trainer_ships_one_and_none_where_nothing_is_foreseen(monkeypatch):
    monkeypatch.setattr(lessons, "SEEDS", range(901, 926))  # onsets are rare in that world
    known = lessons.learn(runs(True))
    assert known["shipped"]["0"] >= 1 and known["shipped"]["1"] == 0 and known["trees"]["1"] is None
    tree, program = json_tree.loads(json.dumps(known["trees"]["0"]))
    assert program.name == "congestion" and 0 in tree.feature
    assert known["decisions"]["0"]["first"] == 1 and "first" not in known["decisions"]["1"]


def test_an_access_point_acts_with_its_own_tree_or_with_the_committed_one(tmp_path, monkeypatch):
    monkeypatch.setattr(play, "kernel", lambda: "/cache/kernel-1/linux")
    own = json.loads(bundle.TREE.read_text())
    own["threshold"][0] = 1
    file, exporter = tmp_path / "online.json", tmp_path / "exporter"
    exporter.write_text("one")
    file.write_text(json.dumps({"contexts": {"judge/web/cubic-fq": {"trees": {"0": own, "1": None, "2": None}}}}))
    how, cell = play.Settings(exporter=exporter, online=file), play.Cell("judge", "web", WEB, 1001)
    trees = play.own_trees(cell, how)
    assert json.loads(trees["0"]) == own and trees["1"] == trees["2"] == bundle.TREE.read_text()
    made = bundle.make(tmp_path, None, (), bundle.TREE, None, {f"web-{ap}": text for ap, text in trees.items()})
    files = [pathlib.Path(made["bundle"][f"web-{ap}"]).read_bytes() for ap in "012"]
    assert files[0] != files[1] == files[2]
    before = play.key(cell, how)
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"contexts": {"judge/web/cubic-fq": {"trees": {"0": None, "1": None, "2": None}}}}))
    assert play.key(cell, dataclasses.replace(how, online=other)) != before
    with pytest.raises(learned.NoLesson, match="lab/evaluate/lessons --set judge --scenario lossy --method cubic-fq"):
        play.own_trees(play.Cell("judge", "lossy", WEB, 1001), how)
