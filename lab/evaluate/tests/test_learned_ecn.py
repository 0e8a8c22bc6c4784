"""Learned marks: rows are what a sender sees with what the queue was, fits are the same in integers, and what is
committed is what the page says.
"""
import pathlib
from types import SimpleNamespace

import numpy as np
import pytest
from evaluate import (
    aims,
    ecn_fit,
    ecn_samples,
    ecn_variants,
    follows,
    learned_ecn,
    results,
    scenarios,
    sender_models,
    verdict,
)
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


def talk_of(sent_ms, arrived_ms, round_trips_ms) -> SimpleNamespace:
    """A connection whose every packet came, and was acknowledged."""
    sent_ns = np.array(sent_ms, np.uint64) * np.uint64(MS)
    return SimpleNamespace(sent={"t_ns": sent_ns}, arrived={"t_ns": np.array(arrived_ms, np.uint64) * np.uint64(MS)},
                           where=np.arange(len(sent_ms)),
                           round_trips_of=lambda: (np.arange(len(sent_ms)), sent_ns, np.array(round_trips_ms) * MS))


def test_one_flow_of_a_variant_is_what_the_set_has(monkeypatch):
    monkeypatch.setattr(ecn_samples, "HELD", 1)
    monkeypatch.setattr(ecn_variants, "HELD", 1)
    talk = talk_of([0, 0, 0, 0, 50], [20, 21, 22, 23, 61], [31, 32, 33, 34, 21])
    for limit in (4, 6, 7):
        assert ecn_variants.of_talks([talk], 10 * MS, limit)[0].tolist() == ecn_samples.of_talk(
            talk, 10 * MS, limit).tolist()


def test_the_queue_of_a_flow_is_that_of_all(monkeypatch):
    """Behind a FIFO: the second flow has one packet of its own there, and three of the first before it."""
    monkeypatch.setattr(ecn_variants, "HELD", 1)
    first = talk_of([0, 0, 0, 0], [20, 21, 22, 23], [31, 32, 33, 34])
    second = talk_of([1, 1], [24, 25], [34, 35])
    assert ecn_variants.of_talks([first, second], 10 * MS, 10)[1][:, ecn_samples.HALF].tolist() == [1]
    assert ecn_variants.of_talks([second], 10 * MS, 10)[0][:, ecn_samples.HALF].tolist() == [0]


def test_a_wait_in_a_txq_ends_when_the_transmission_before_is_over():
    """Transmissions end at 20, 40 and 41 ms; two packets are of the second. Who lost its packet is nobody's truth."""
    ms = lambda *values: np.array(values, np.int64) * MS
    left = np.append(ms(20, 40, 40, 41), ecn_variants.NEVER)
    assert ecn_variants.truths(ms(0, 0, 1, 19, 0), left, None).tolist() == [False, True, False, True, False]


def test_variants_are_downloads_to_the_same_station():
    made = ecn_variants.given("walk", 4)
    assert [flow["start_s"] for flow in made["flows"]] == [0, 0.5, 1, 1.5]
    assert {flow["station"] for flow in made["flows"]} == {"sta"} and len(scenarios.load("ecn", "walk")["flows"]) == 1


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
    text = learned_ecn.text(learned_ecn.tables(kept))
    assert (learned_ecn.RESULTS / "offline.md").read_text() == text
    page = (ROOT / "policies/learned-ecn/README.md").read_text()
    for found in learned_ecn.tables(kept).values():
        assert learned_ecn.table.markdown(found) in page


def test_what_several_flows_and_txqs_gave_is_on_the_page():
    kept = learned_ecn.read(name="variants")
    found = learned_ecn.variant_tables(kept)
    assert (learned_ecn.RESULTS / "variants.md").read_text() == learned_ecn.text(found)
    raw, page = (ROOT / "policies/learned-ecn/README.md").read_text(), words()
    for rows in found.values():
        assert learned_ecn.table.markdown(rows) in raw
    means = {(which, of, who): learned_ecn.variant_means(kept, which, of, who) for which in ecn_variants.VARIANTS
             for of in ("time", "channel") for who in learned_ecn.WHO}
    m = lambda *which: learned_ecn.figure(means[which])
    assert {len(values) for values in means.values()} == {10}
    waited = np.mean([row["half"] for row in kept if (row["variant"], row["split"]) == ("txq", "channel")])
    for said in (f"K-means has {m('four', 'time', 'logarithmic')} by time for the threshold's"
                 f" {m('four', 'time', 'rtt')}",
                 f"with {m('txq', 'channel', 'rtt')} for one flow and {m('txq-four', 'channel', 'rtt')} for four",
                 f"of logarithms has {m('txq', 'channel', 'logarithmic')} and"
                 f" {m('txq-four', 'channel', 'logarithmic')} there",
                 f"with {m('txq', 'channel', 'exponential')} and {m('txq-four', 'channel', 'exponential')}, the second",
                 f"{100 * waited:.0f} % of one flow's packets waited so long"):
        assert said in page, said
    best = {which: max(np.mean(means[which, "time", who]) for who in ecn_fit.FORMS) for which in ecn_variants.VARIANTS}
    assert max(best.values()) < 0.9, "K-means misses .90 in all three"
    less = learned_ecn.variant_means(kept, "txq-four", "channel", "exponential", "rtt")
    assert abs(np.mean(less)) < learned_ecn.spread.mean(less).half, "within chance of the threshold's"


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
