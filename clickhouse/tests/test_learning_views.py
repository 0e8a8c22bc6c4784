"""Views of the learning loop: figures worked out by hand, and by plain Python on random rows."""

import random
import re

import pytest
import yaml
from conftest import FOLDER

CLASSES = ["Good", "Acceptable", "Poor", "Bad"]
RANGE = "from = '2026-11-20 00:00:00', to = '2026-11-20 02:00:00'"


def instant(i: int) -> str:
    """Decision instant number i of the day."""
    return f"2026-11-20 00:{i // 600:02d}:{i // 10 % 60:02d}.{i % 10}00000"


def prediction(i: int, now: str, came: str, said: str, congested: int = 0, **values) -> dict:
    return {
        "ap_id": "a", "site": "s", "ts": instant(i), "boot_id": 1, "source": "online", "version": 4, "bundle": 7,
        "predicted": said, "confidence_permille": 600, "congested_permille": congested, "eval_ns": 1000,
        "class_now": now, "class": came, "complete": 1, "features_match": "same",
        "under_control": "no", **values
    }


SEVEN = [
    prediction(0, "Good", "Good", "Good", 100),
    prediction(1, "Good", "Good", "Poor", 800),               # false alarm
    prediction(2, "Good", "Poor", "Poor", 800),               # onset, said
    prediction(3, "Acceptable", "Bad", "Acceptable", 350),    # onset, not said
    prediction(4, "Acceptable", "Acceptable", "Acceptable", 300),
    prediction(5, "Poor", "Poor", "Bad", 900),
    prediction(6, "Bad", "Good", "Good", 50),
]
NOT_JUDGED = [
    prediction(7, "unknown", "unknown", "Bad", 999, complete=0, features_match="unknown"),
    prediction(8, "Good", "Bad", "Good", 1, complete=0),
]


def test_quality_by_hand(database):
    database.insert("prediction", SEVEN + NOT_JUDGED)
    (
        (
            decisions,
            matched,
            judged,
            onsets,
            accuracy,
            f1,
            precision,
            recall,
            ap,
            brier,
            accuracy_p,
            f1_p,
            ap_p,
            eval_avg,
            eval_max,
        ),
    ) = database.rows(
        "SELECT decisions, matched, judged_predictions, onsets, accuracy, macro_f1, onset_precision, onset_recall,"
        " onset_average_precision, congested_brier, persistence_accuracy, persistence_macro_f1,"
        f" persistence_onset_average_precision, eval_ns_avg, eval_ns_max FROM v_model_quality({RANGE})"
    )
    assert (decisions, matched, judged, onsets) == ("9", "8", "7", "2")
    assert accuracy == "0.5714"                        # 4 of 7
    assert f1 == "0.4917"                              # (4/5 + 2/3 + 2/4 + 0) / 4
    assert (precision, recall) == ("0.5", "0.5")
    assert ap == "0.5833"                              # 1/2 at 800, 2/3 at 350: half of the onsets each
    assert brier == "0.1736"                           # (.01 + .64 + .04 + .4225 + .09 + .01 + .0025) / 7
    assert (accuracy_p, f1_p) == ("0.5714", "0.5")     # (2/3 + 2/3 + 2/3 + 0) / 4
    assert ap_p == "0.45"                              # Acceptable: 1 of 2; Good and Acceptable: 2 of 5
    assert (eval_avg, eval_max) == ("1000", "1000")


def test_quality_of_one_bundle_on_many_access_points_is_taken_together(database):
    other = [{**row, "ap_id": "b", "site": "t"} for row in SEVEN]
    database.insert("prediction", SEVEN + other + [prediction(9, "Good", "Good", "Good", 0, version=5, bundle=8)])
    rows = database.rows(f"SELECT per, site, ap_id, version, bundle, decisions, accuracy FROM v_quality({RANGE})")
    assert rows == [["ap", "s", "a", "0", "0", "8", "0.625"], ["ap", "t", "b", "0", "0", "7", "0.5714"],
                    ["ap, bundle", "s", "a", "4", "7", "7", "0.5714"], ["ap, bundle", "s", "a", "5", "8", "1", "1"],
                    ["ap, bundle", "t", "b", "4", "7", "7", "0.5714"], ["bundle", "", "", "4", "7", "14", "0.5714"],
                    ["bundle", "", "", "5", "8", "1", "1"], ["fleet", "", "", "0", "0", "15", "0.6"]]
    together = database.rows(
        f"SELECT onset_average_precision, macro_f1 FROM v_quality({RANGE}) WHERE per = 'bundle' AND version = 4")
    assert together == [["0.5833", "0.4917"]]  # the same twice is the same


def test_lead_is_the_time_to_the_first_drop_of_those_foreseen_and_of_all(database):
    def onset(i: int, said: str, until_us: int | None, since_us: int = -1, came: str = "Bad", **values) -> dict:
        return prediction(i, "Good", came, said, since_drop_us=since_us, until_drop_us=until_us, **values)

    some = [onset(0, "Poor", 104_000), onset(1, "Poor", 309_999), onset(2, "Good", 900_000),
            onset(3, "Bad", 700_000, since_us=400_000), onset(4, "Bad", -1), onset(5, "Bad", None),
            onset(6, "Bad", 500_000, complete=0), onset(7, "Poor", 600_000, came="Good")]
    query = f"SELECT first_drops, first_drops_foreseen, lead_p50_ms, lead_all_p50_ms FROM v_model_quality({RANGE})"
    database.insert("prediction", some[3:])
    assert database.rows(query) == [["0", "0", "\\N", "\\N"]], "one of each reason"
    database.insert("prediction", some[:3])
    assert database.rows(query) == [["3", "2", "100", "100"]]
    database.insert("prediction", [onset(8, "Good", 10_000)])
    assert database.rows(query) == [["4", "2", "100", "0"]]
    of_an_hour = query.replace("00:00:00'", "00:00:00.1'")
    assert database.rows(of_an_hour) == [["3", "1", "300", "0"]], "the ends of a range are read from the rows"


def test_a_model_whose_alarms_prevent_what_they_foresee_is_not_called_wrong(database):
    """It foresaw all of ten congestions, and control kept them away; another did not foresee any."""
    acted = {"complete": 0, "under_control": "yes"}
    good = [prediction(i, "Good", "Good", "Poor" if i < 10 else "Good", 900 * (i < 10), **(acted if i < 10 else {}))
            for i in range(100)]
    blind = [prediction(i, "Good", "Bad" if i < 10 else "Good", "Good", 10, version=5, bundle=8)
             for i in range(100)]
    database.insert("prediction", good + blind)
    rows = database.rows("SELECT version, judged_predictions, onsets, acted_alarms, accuracy, onset_recall,"
                         f" onset_precision, congested_brier FROM v_model_quality({RANGE})")
    assert rows == [["4", "90", "0", "10", "1", "1", "\\N", "0"], ["5", "100", "10", "0", "0.9", "0", "\\N", "0.0981"]]
    assert database.rows("SELECT sum(under_control) FROM prediction_1m") == [["10"]]


@pytest.mark.parametrize("rows", [[prediction(i, "Good", "Good", "Good", 10 * i)
                                   for i in range(5)], [prediction(i, "Good", "Bad", "Bad", 10 * i)
                                                        for i in range(5)], NOT_JUDGED])
def test_there_is_no_average_precision_without_both(database, rows):
    database.insert("prediction", rows)
    assert database.rows(
        f"SELECT onset_average_precision, persistence_onset_average_precision FROM v_model_quality({RANGE})") == [[
            "\\N", "\\N"
        ]]


def average_precision(scored: list[tuple[int, bool]]) -> float:
    """Sum over the distinct scores, from above, of the recall gained times the precision there."""
    positives, area, seen, hits = sum(p for _, p in scored), 0.0, 0, 0
    for threshold in sorted({s for s, _ in scored}, reverse=True):
        here = [p for s, p in scored if s == threshold]
        seen, hits = seen + len(here), hits + sum(here)
        area += sum(here) / positives * hits / seen
    return area


@pytest.mark.parametrize("seed, first, last", [(1, 0, 3000), (2, 5, 2995), (3, 130, 180), (4, 595, 1205),
                                               (5, 600, 1200), (6, 601, 1199)])
def test_quality_of_random_rows(database, seed, first, last):
    """Ranges that begin and end within minutes, or within one: minutes come from the rollup, the ends from the rows."""
    r = random.Random(seed)
    rows = [
        prediction(i, *(r.choice(CLASSES + ["unknown"] * (k < 2)) for k in range(3)),
                   r.randrange(0, 1001, r.choice((1, 50))), complete=r.choice((0, 1, 1)),
                   confidence_permille=r.randrange(0, 1001)) for i in range(3000)
    ]
    for part in range(0, 3000, 700):
        database.insert("prediction", rows[part:part + 700])
    judged = [(CLASSES.index(x["class_now"]) if x["class_now"] != "unknown" else -1, CLASSES.index(x["class"]),
               CLASSES.index(x["predicted"]), x["congested_permille"]) for x in rows[first:last]
              if x["class"] != "unknown" and x["complete"]]
    calm = [x for x in judged if x[0] in (0, 1)]
    f1 = [
        2 * sum(c == p == k for _, c, p, _ in judged) / (sum(c == k
                                                             for _, c, _, _ in judged) + sum(p == k
                                                                                             for _, _, p, _ in judged))
        for k in {c for _, c, _, _ in judged}
    ]
    want = [
        last - first,
        len(judged),
        sum(c == p for _, c, p, _ in judged) / len(judged),
        sum(f1) / len(f1),
        average_precision([(s, c >= 2) for _, c, _, s in calm]),
        average_precision([(n, c >= 2) for n, c, _, _ in calm]),
        sum(c >= 2 and p >= 2 for _, c, p, _ in calm) / max(1, sum(p >= 2 for _, _, p, _ in calm)),
        sum(c >= 2 and p >= 2 for _, c, p, _ in calm) / max(1, sum(c >= 2 for _, c, _, _ in calm))
    ]
    (got,) = database.rows(
        "SELECT decisions, judged_predictions, accuracy, macro_f1, onset_average_precision,"
        " persistence_onset_average_precision, onset_precision, onset_recall FROM v_model_quality(from ="
        f" '{instant(first)}', to = '{instant(last)}')"
    )
    assert [float(x) for x in got] == pytest.approx(want, abs=0.00006)


def test_confusion_by_hand(database):
    database.insert("prediction", SEVEN + NOT_JUDGED)
    rows = database.rows(f"SELECT class, predicted, predictions, share FROM v_confusion({RANGE})")
    assert rows == [["Good", "Good", "2", "0.6667"], ["Good", "Poor", "1", "0.3333"],
                    ["Acceptable", "Acceptable", "1", "1"], ["Poor", "Poor", "1", "0.5"], ["Poor", "Bad", "1", "0.5"],
                    ["Bad", "Acceptable", "1", "1"]]


def test_calibration_by_hand(database):
    sure = [(1000, True), (1000, True), (980, False), (620, True), (600, False), (599, True), (0, False)]
    database.insert("prediction", [
        prediction(i, "Good", "Good", "Good" if right else "Bad", confidence_permille=c)
        for i, (c, right) in enumerate(sure)
    ] + NOT_JUDGED)
    rows = database.rows(
        f"SELECT confidence_from, predictions, confidence_avg, correct, correct_ratio FROM v_calibration({RANGE})")
    assert rows == [["0", "1", "0", "0", "0"], ["0.5", "1", "0.599", "1", "1"], ["0.6", "2", "0.61", "1", "0.5"],
                    ["0.9", "3", "0.9933", "2", "0.6667"]]


def lead(database, states: str, alarms: str, **values) -> list[str]:
    """`states`: class_now at each instant (g, a, p, b, or - for no decision, ? for unknown); `alarms`: x where Poor or
    Bad was predicted.
    """
    names = {"g": "Good", "a": "Acceptable", "p": "Poor", "b": "Bad", "?": "unknown"}
    rows = [
        prediction(i, names[s], names[s], "Poor" if x == "x" else "Good", **({"complete": 0} if s == "?" else {}),
                   **values) for i, (s, x) in enumerate(zip(states, alarms, strict=True)) if s != "-"
    ]
    database.insert("prediction", rows)
    found = database.rows(f"SELECT onsets, onsets_warned, lead_p50_ms, lead_max_ms FROM v_lead_time({RANGE})")
    return found[0] if found else []


@pytest.mark.parametrize("states, alarms, want", [
    ("gggggpp", "..xxxxx", ["1", "1", "300", "300"]),    # warned from instant 2, congested at 5
    ("gggggpp", ".xx.x..", ["1", "1", "100", "100"]),    # the alarm that was broken off does not count
    ("gggggpp", ".xxx.xx", ["1", "0", "\\N", "\\N"]),    # over before it came
    ("gggggpp", ".......", ["1", "0", "\\N", "\\N"]),
    ("ppgggbb", "xxxxxxx", ["1", "1", "300", "300"]),    # an alarm that never ended counts from the calm on
    ("gapabgp", ".xxxxxx", ["3", "3", "100", "100"]),    # three onsets, each after one calm instant with an alarm
    ("gg---pp", "xx---xx", []),                          # too long ago
    ("gg-ggpp", "xx-xxxx", ["1", "1", "500", "500"]),    # one decision is missing: still the same alarm
    ("gg--ggp", "xx--xxx", ["1", "1", "200", "200"]),    # two are: a new one
    ("ggg?ggp", "xxxxxxx", ["1", "1", "200", "200"]),
    ("ggg??pp", "xxxxxxx", []),
    ("pppp", "xxxx", []),
    ("aappaapp", ".x...xxx", ["2", "2", "100", "100"]),
])
def test_lead_time_by_hand(database, states, alarms, want):
    assert lead(database, states, alarms) == want


def test_lead_time_is_of_the_model_that_warned_last(database):
    database.insert("prediction", [prediction(i, "Good", "Good", "Poor", version=1 + (i > 3))
                                   for i in range(6)] + [prediction(6, "Bad", "Bad", "Bad", version=3)])
    database.insert("prediction",
                    [{**prediction(i, "Good", "Good", "Poor"), "ap_id": "b"}
                     for i in range(6)] + [{**prediction(6, "Bad", "Bad", "Bad", boot_id=2), "ap_id": "b"}])
    # b was rebooted in between
    assert database.rows(f"SELECT ap_id, version, onsets, lead_max_ms FROM v_lead_time({RANGE})") == [[
        "a", "2", "1", "600"
    ]]


def test_features_are_compared(database):
    rows = [
        prediction(i, "Good", "Good", "Good", features_match=m)
        for i, m in enumerate(["same"] * 6 + ["differ"] * 2 + ["unknown"] + ["lacked input"] * 3)
    ] + NOT_JUDGED[:1]
    database.insert("prediction", rows)
    assert database.rows(
        f"SELECT ap_id, same, differ, lacked_input, other_program, without_item, differ_ratio FROM"
        f" v_features_match({RANGE})") == [[
            "a", "6", "2", "3", "1", "1", "0.25"
        ]]


def test_tree_decisions_by_hand(database):
    row = {
        "ap_id": "a", "site": "s", "action": "held", "reason": "not_better", "items": 100, "in_force_onset_ap": 0.5,
        "persistence_onset_ap": 0.25, "fit_us": 4000
    }
    database.insert("tree_decision", [{**row, "ts": instant(0), "candidate_onset_ap": 0.4},
                                      {**row, "ts": instant(1), "candidate_onset_ap": "nan", "fit_us": 6000}, {
                                          **row, "ts": instant(2), "action": "shipped", "reason": "better",
                                          "candidate_onset_ap": 0.75, "in_force_onset_ap": "nan"
                                      }])
    rows = database.rows(
        "SELECT action, reason, trees, onset_ap_avg, gain_on_in_force, gain_on_persistence, fit_us_avg, fit_us_max,"
        f" last FROM v_tree_decisions({RANGE})"
    )
    assert rows == [["held", "not_better", "2", "0.4", "-0.1", "0.15", "5000", "6000",
                     instant(1)], ["shipped", "better", "1", "0.75", "\\N", "0.5", "4000", "4000",
                                   instant(2)]]


def test_releases_and_who_took_them(database):
    release = {"source": "registry", "slot": "champion", "scope": "fleet", "action": "release", "model": "congestion"}
    database.insert("release", [{**release, "ts": instant(0), "version": 3, "bundle": 30, "serial": 1}, {
        **release, "ts": instant(600), "version": 4, "bundle": 40, "serial": 2
    }, {**release, "ts": instant(1200), "version": 3, "bundle": 30, "serial": 3
        }, {**release, "ts": instant(1800), "version": 0, "bundle": 0, "serial": 0, "action": "withdraw"}])
    status = [("a", 5, 30, 1), ("b", 20, 30, 1), ("b", 30, 30, 3), ("a", 610, 40, 1), ("b", 605, 40, 2),
              ("a", 1203, 30, 1), ("c", 1900, 0, 2)]
    database.insert("bundle_status", [{"ap_id": a, "ts": instant(i), "bundle": b, "state": s} for a, i, b, s in status])
    rows = database.rows(
        "SELECT released, action, version, aps_applied, aps_rejected, first_applied, applied_after_p50_ms,"
        f" applied_after_max_ms FROM v_releases({RANGE})"
    )
    assert rows == [
        [instant(0), "release", "3", "2", "0", instant(5), "2000", "2000"],
        [instant(600), "release", "4", "1", "1", instant(610), "1000", "1000"],
        # the rollback: reports from before do not count
        [instant(1200), "release", "3", "1", "0", instant(1203), "300", "300"],
        [instant(1800), "withdraw", "0", "0", "0", "\\N", "\\N", "\\N"]]


def test_bundle_state_is_of_the_last_report(database):
    now = int(database.query("SELECT toUnixTimestamp(now())"))
    status = [("a", -90000, 30, 3, 1, 0), ("a", -50, 40, 4, 1, 0), ("a", -20, 50, 5, 2, 5), ("b", -30, 40, 4, 3, 0),
              ("b", -10, 60, 6, 4, 0), ("c", -5, 99, 0, 2, 1), ("d", -40, 10, 1, 2, 8), ("d", -30, 20, 2, 1, 0)]
    database.insert(
        "bundle_status",
        [{"ap_id": a, "ts": now + s, "bundle": b, "source": 1, "version": v, "serial": v, "state": state, "reason": r}
         for a, s, b, v, state, r in status])
    rows = database.rows(
        "SELECT ap_id, bundle, source, version, rejected_since, last_rejected, last_reason, waits_for_activation,"
        " reports_applied, reports_rejected FROM v_bundle_state"
    )
    assert rows == [
        ["a", "40", "registry", "4", "1", "50", "bad_signature", "0", "2", "1"],
        ["b", "40", "registry", "4", "0", "\\N", "\\N", "1", "0", "0"],
        ["c", "\\N", "unknown", "\\N", "1", "99", "oversized", "0", "0", "1"],
        ["d", "20", "registry", "2", "0", "10", "replayed", "0", "1", "1"]]


def test_names_in_the_sql_are_those_of_the_contract():
    reasons = yaml.safe_load((FOLDER.parent / "schema" / "settings.yaml").read_text())["bundle_reasons"]
    sql = (FOLDER / "migrations" / "0023_not_permitted.sql").read_text()
    numbers, names = re.search(r"transform\(rejected\.6, \[([^\]]*)\], \[([^\]]*)\]", sql).groups()
    assert [int(n) for n in numbers.split(",")] == list(range(len(reasons)))
    assert re.findall(r"'(\w+)'", names) == reasons
