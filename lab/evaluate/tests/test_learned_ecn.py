"""Learned marks: rows are what a sender sees with what the queue was, fits are the same in integers, and what is
committed is what the page says.
"""
import pathlib
from types import SimpleNamespace

import numpy as np
import pytest
from evaluate import aims, ecn_fit, ecn_samples, follows, learned_ecn, results, scenarios, sender_models, verdict
from evaluate.methods import method
from oal_schema.centroids import QUEUE

ROOT = pathlib.Path(__file__).resolve().parents[3]
MS = 1_000_000


def runs(seed: int, n: int = 1200) -> list[np.ndarray]:
    """Round trips of 25 ms or so while the queue is short, of 60 while it is long; twelve seconds."""
    draw = np.random.default_rng(seed)
    half = (np.arange(n) // 40) % 2
    rtt = np.where(half, 60_000, 25_000) * draw.uniform(0.9, 1.1, n)
    return [np.stack([2_000_000 + np.arange(n) * 10_000, rtt.astype(int), draw.integers(100, 9000, n), half], axis=1)]


def test_a_row_is_marked_where_its_packet_found_the_queue_half_full(monkeypatch):
    """Four packets sent at once, delivered one after the other, and one when they are gone."""
    sent_ns = np.array([0, 0, 0, 0, 50], np.uint64) * np.uint64(MS)
    arrived = np.array([20, 21, 22, 23, 61], np.uint64) * np.uint64(MS)
    talk = SimpleNamespace(sent={"t_ns": sent_ns}, arrived={"t_ns": arrived}, where=np.arange(5),
                           round_trips_of=lambda: (np.array([0, 3, 4]), sent_ns[[0, 3, 4]],
                                                   np.array([31, 34, 21]) * MS))
    monkeypatch.setattr(ecn_samples, "HELD", 1)
    rows = ecn_samples.of_talk(talk, 10 * MS, 6)
    assert rows.tolist() == [[34_000, 34_000, 3000, 1], [71_000, 21_000, 37_000, 0]], "the first has none before it"
    assert not ecn_samples.of_talk(talk, 10 * MS, 7)[:, ecn_samples.HALF].any()


def test_inputs_are_those_of_the_latest_acknowledgements():
    rows = np.array([[1, 10, 1, 0], [2, 20, 2, 0], [3, 30, 3, 1]])
    p = ecn_fit.points([rows], 2)
    assert p.x.tolist() == [[20, 2, 10, 1], [30, 3, 20, 2]] and p.half.tolist() == [False, True]


def test_both_classes_count_alike():
    truth = np.array([True] * 9 + [False])
    assert ecn_fit.macro_f1(truth, np.ones(10, bool)) == pytest.approx((18 / 19 + 0) / 2)
    assert ecn_fit.macro_f1(truth, truth) == 1 and ecn_fit.macro_f1(truth[:9], truth[:9]) == 1


def test_times_of_a_split_have_a_gap():
    (first, second, third) = (ecn_fit.TIMES[part] for part in ("train", "validation", "test"))
    assert first[1] + 0.5 <= second[0] and second[1] + 0.5 <= third[0]
    assert len(ecn_fit.within(runs(1)[0], "validation")) == 250


@pytest.mark.parametrize("form", ecn_fit.FORMS)
def test_the_cluster_of_longer_round_trips_is_congested(form):
    seen = ecn_fit.points(runs(1), 1)
    marks = ecn_fit.fit(seen, form, 0.9, 5, 1)
    other = ecn_fit.points(runs(2), 1)
    assert ecn_fit.macro_f1(other.half, marks.says(other.x)) > 0.99


def test_a_kernel_says_the_same_as_the_fit():
    """K-means and the taught border, as integers; and a threshold."""
    seen, other = ecn_fit.points(runs(1), 2), ecn_fit.points(runs(2), 2)
    taught, _ = ecn_fit.linear(runs(1), runs(3))
    assert ecn_fit.macro_f1(other.half, taught.says(ecn_fit.points(runs(2), len(taught.weight) // 2).x[-len(other.x):]
                                                    )) > 0.98
    for marks in (ecn_fit.fit(seen, "logarithmic", 0.5, 5, 1), taught):
        c, width = marks.integers(), len(marks.weight)
        said = [c.answer([int(v) for v in x[:width]]) == QUEUE for x in other.x]
        assert np.mean(np.array(said) == marks.says(other.x[:, :width])) > 0.999
        assert len(bytes.fromhex(sender_models.pack_marks(c))) == sender_models.MARKS_LAYOUT.size
    rule = sender_models.mark_from(40_000)
    assert [rule.answer([us]) == QUEUE for us in (39_000, 39_990, 40_010, 41_000)] == [False, False, True, True]


def test_a_window_that_follows_its_link():
    rates = np.array([1, 2, 3, 4.0])
    assert follows.correlation(2 * rates, rates) == pytest.approx(1)
    assert follows.correlation(np.ones(4), rates) is None
    assert follows.share_marked({"marked": 1, "free": 3}) == 0.25 and follows.share_marked({"marked": 0}) is None


def test_every_channel_has_models_for_its_senders():
    for name in scenarios.names(ecn_samples.SET):
        for control in sender_models.MARKS:
            plan = scenarios.plan(scenarios.load(ecn_samples.SET, name), name, method(f"{control}-fifo"), 1)
            assert len(bytes.fromhex(plan["oal_ecn"])) == sender_models.MARKS_LAYOUT.size
            assert plan["oal_lc"] is None and plan["flows"][0]["cc"] == "oal_ecn"


def test_what_was_judged_offline_is_on_the_page():
    kept = learned_ecn.read()
    assert len({row["seed"] for row in kept}) >= 10
    text = learned_ecn.text(kept)
    assert (learned_ecn.RESULTS / "offline.md").read_text() == text
    page = (ROOT / "policies/learned-ecn/README.md").read_text()
    for found in learned_ecn.tables(kept).values():
        assert learned_ecn.table.markdown(found) in page


def words() -> str:
    return " ".join((ROOT / "policies/learned-ecn/README.md").read_text().split())


def test_the_page_says_why_marks_are_not_shipped():
    page, kept = words(), learned_ecn.read()
    means = {(who, split): learned_ecn.mean_of(kept, split, who)
             for who in ("logarithmic", "exponential", "rtt", "linear") for split in ("time", "channel")}
    assert (f"By time K-means has {means['logarithmic', 'time']} and the threshold {means['rtt', 'time']}") in page
    assert (f"it has {means['logarithmic', 'channel']}, surely less than the threshold's"
            f" {means['rtt', 'channel']}") in page
    assert f"it has {means['exponential', 'time']} and {means['exponential', 'channel']}" in page
    assert f"has {means['linear', 'time']} by time and {means['linear', 'channel']} on an unseen link" in page


def test_the_page_says_what_the_law_does():
    page, r = words(), results.Results.read(learned_ecn.RESULTS)
    named = {aim.name: aim for aim in aims.load("learned-ecn")[0]}
    found = {name: [aims.figure(one.found) for one in aims.judge(r, named[name])] for name in named}
    alone = aims.measured(r, named["threshold-wait"], named["threshold-wait"].limits[0], ("recorded",))
    assert f"on the recorded link alone it has {aims.figure(alone)} of CUBIC's wait" in page
    rate = lambda scenario, which: verdict.mean(r, scenario, method(which), "long_mbps").value
    for name, said in (("over-threshold", "leaves {} of the threshold's wait at {} of its throughput"),
                       ("steep-over-threshold", "with steep growth {} at {}"),
                       ("threshold-wait", "has {} of CUBIC's wait at {} of its throughput"),
                       ("threshold-follows", "a correlation of {} with the capacity")):
        assert said.format(*found[name]) in page, name
    assert (f"it has {rate('walk', 'le_steep-fifo'):.1f} Mbit/s for the threshold's"
            f" {rate('walk', 'le_rtt_steep-fifo'):.1f} and CUBIC's {rate('walk', 'cubic-fifo'):.1f}") in page
    assert (f"DCTCP with true marks has {rate('blocked', 'dctcp-fq-ce5'):.1f} Mbit/s for CUBIC's"
            f" {rate('blocked', 'cubic-fifo'):.1f}") in page
