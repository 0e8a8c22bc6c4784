"""A version against the one in force and against persistence, on the same kept items."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oal_training.batch import experiment, gate, run
from oal_training.batch.gate import Rules, judge
from oal_training.batch.persistence import Persistence
from oal_training.errors import TrainingError
from oal_training.stored import kept

RIVAL = Rules(rivals=("persistence",))
CALM = lambda _line: None


@pytest.fixture(scope="session")
def held(learning):
    """The items held out of the capture, and what the policy's own tree says of them."""
    spec = experiment.load(experiment.OWN)
    fitted_on, late = run.hold_out(learning, spec, CALM)
    model = run.fit(fitted_on, spec, CALM)
    assert fitted_on.ts_us[-1] + learning.embargo_us <= late.ts_us[0], "no label reaches from one into the other"
    proba = model.proba(late.x)
    return late, (model.predict(late.x, proba), proba)


def worse(said):
    """The same model on a bad day: of half of the items it says the opposite."""
    flipped = said[1][:, ::-1].copy()
    odd = (np.arange(len(flipped)) % 2).astype(bool)
    proba = np.where(odd[:, None], flipped, said[1])
    return np.argmax(proba, axis=1), proba


def test_what_is_worse_beyond_the_interval_is_refused_and_what_is_better_is_let_in(held):
    items, good = held
    verdict = judge(items, "new", {"new": worse(good), "old": good}, RIVAL)
    assert verdict.refused.startswith("worse: right 0.") and "of old, difference -0." in verdict.refused
    assert f"on {len(items)} items with {verdict.onsets} onsets in 15 blocks of 10 s" in verdict.refused
    verdict = judge(items, "new", {"new": good, "old": worse(good)}, RIVAL)
    assert verdict.refused == "" and len(verdict.compared) == 4
    assert verdict.scores["new"]["accuracy"] > verdict.scores["old"]["accuracy"]
    assert set(verdict.scores) == {"new", "old", "persistence"}


def test_the_same_answers_are_no_worse_and_a_difference_within_the_interval_is_none(held):
    items, good = held
    assert "the same answers as old" in judge(items, "new", {"new": good, "old": good}, Rules()).compared
    nearly = good[0].copy()
    nearly[::200] = (nearly[::200] + 1) % 4
    said = {"new": (nearly, good[1]), "old": good}
    assert judge(items, "new", said, Rules(figures=("onset_ap",))).refused == ""


def test_the_first_is_compared_with_persistence_where_the_policy_asks(held):
    items, good = held
    assert judge(items, "new", {"new": good}, RIVAL).refused == ""
    constant = np.zeros(len(items), np.int64), np.tile([1.0, 0, 0, 0], (len(items), 1))
    assert "of persistence, difference -0." in judge(items, "new", {"new": constant}, RIVAL).refused
    assert judge(items, "new", {"new": constant}, Rules()).refused == "", "nothing in force, no rival asked for"


def test_a_tree_that_beats_persistence_but_not_one_column_as_it_is_is_refused(held, learning):
    """The policy's own tree of the capture: onset AP .19 for .11 of persistence, and a column has more."""
    items, good = held
    early = learning[learning.ts_us + learning.embargo_us <= items.ts_us[0]]
    assert judge(items, "new", {"new": good}, RIVAL).refused == ""
    every = Rules(rivals=tuple(gate.RIVALS))
    verdict = judge(items, "new", {"new": good}, every, early)
    assert "onset AP" in verdict.refused and "of best column, difference -0." in verdict.refused
    assert set(verdict.scores) == {"new", "persistence", "best column", "two thresholds"}
    assert "no rule can be chosen" in judge(items, "new", {"new": good}, every).refused
    base = Persistence(4).fit(items)
    same = base.predict(items), np.eye(4)[base.predict(items)]
    assert judge(items, "new", {"new": same}, RIVAL).refused, "who says what persistence says does not beat it"


def test_what_cannot_be_known_is_refused(held):
    items, good = held
    of = lambda rows, by: judge(items[rows], "new", {"new": (good[0][rows], good[1][rows])}, by).refused
    assert of(np.arange(100), RIVAL).startswith("100 items with")
    calm = np.flatnonzero(~items.congested)
    assert "with 0 onsets are too few" in of(calm, RIVAL)
    short = items.ts_us < items.ts_us[0] + 60_000_000
    assert "blocks of 10 s are too few to draw from" in of(short, replace(RIVAL, min_onsets=1))
    assert "onset AP nan against nan of persistence cannot be compared" in of(calm, replace(RIVAL, min_onsets=0))


def test_rules_are_the_policys_and_a_mistake_in_them_is_said(tmp_path, monkeypatch):
    assert gate.rules("rwnd-fair") == Rules(rivals=("persistence",), block_s=(30, 10))
    monkeypatch.setattr(gate.policies, "POLICIES", tmp_path)
    assert gate.rules("other") == Rules()
    (tmp_path / "other").mkdir()
    wrong = (("rivals: [luck]", "rivals some of"), ("figure: [x]", "figure"), ("[1]", "list"), ("rounds: x", "'<'"))
    for text, said in wrong:
        (tmp_path / "other" / "gate.yaml").write_text(text)
        with pytest.raises(TrainingError, match=said):
            gate.rules("other")


def test_kept_items_are_the_same_again_and_a_changed_byte_is_refused(learning, tmp_path):
    path = tmp_path / "kept.parquet"
    digest = kept.write(path, learning)
    again = kept.read(path, digest)
    for name in ("x", "group", "ts_us", "y", "now", "loss_now"):
        mine, its = getattr(again, name), getattr(learning, name)
        assert mine.dtype.kind == its.dtype.kind and np.array_equal(mine, its, equal_nan=mine.dtype.kind == "f"), name
    for name in kept.SAID:
        assert getattr(again, name) == getattr(learning, name), name
    assert kept.write(tmp_path / "second.parquet", again) == digest, "kept anew, it is the same file"
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 2] ^= 1
    path.write_bytes(changed)
    with pytest.raises(TrainingError, match="is not what was kept"):
        kept.read(path, digest)
    other = Path(tmp_path / "other.parquet")
    other.write_bytes(b"PAR1")
    with pytest.raises(TrainingError, match="holds no kept items"):
        kept.read(other, kept.sha256(other))


def test_of_few_items_nothing_is_held_out(learning):
    spec = experiment.load(experiment.OWN)
    fitted_on, late = run.hold_out(learning[np.arange(210)], spec, CALM)
    assert late is None and len(fitted_on) == 210
    for wrong in ("0.7", "much"):
        with pytest.raises(TrainingError, match="held_out is"):
            experiment.parse(f"name: a\nmodel: {{kind: decision_tree}}\nheld_out: {wrong}\n", "here")
