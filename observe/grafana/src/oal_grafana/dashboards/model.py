"""Is the model right?"""
from oal_grafana import panels as p
from oal_grafana.board import Board, ap_variables, variable
from oal_grafana.colours import CLASS_NAMES, OK, PLAIN, TEAL, WARN
from oal_grafana.sql import APS, FROM, RANGE, TO, known, last_of_range, may_be_empty, rows_of_last

ONSETS_RARE = "an onset of congestion has to happen before it can be foreseen"
#: Trees of the online trainer have a version each; they are one model here.
MODEL = "if(source = 'online', 'online', concat(toString(source), ' ', toString(version)))"
MODELS = f"SELECT DISTINCT {MODEL} AS model FROM oal.prediction_1m WHERE $__timeFilter(t) AND {APS} ORDER BY model"
CHOSEN = f"{MODEL} IN (${{model:singlequote}})"
#: Judged predictions of the rollup per minute, as v_quality defines them (clickhouse/migrations/0012).
JUDGED = f"FROM oal.prediction_1m WHERE $__timeFilter(t) AND {APS} AND class != 'unknown' AND complete = 1 AND {CHOSEN}"
CALM = "class_now IN ('Good', 'Acceptable')"
CAME, WARNED = "class >= 'Poor'", "predicted >= 'Poor'"
LAST_DAY = rows_of_last("1 DAY")
SAID_SHARES = ", ".join(
    f"sumIf(predictions, predicted = '{name}') / sum(predictions) AS `said {name}`" for name in CLASS_NAMES
)


def _fleet(figure: str) -> str:
    """A figure of v_quality for each source of models, all access points."""
    return (
        f"SELECT toString(source) AS made_by, {figure} AS figure FROM oal.v_quality({RANGE}) WHERE per = 'fleet' ORDER"
        " BY made_by"
    )


def verdicts() -> list:
    """The figures that answer the question."""
    return [
        p.number(
            "Onset average precision",
            "How well the probability of Poor or Bad ranks the instants before congestion, by who made the model;"
            " exact, time shown. Compare with persistence at the right: at or below it the model is of no use.",
            _fleet("onset_average_precision"),
            "none",
            size=(4, 4),
            decimals=2,
            per_row=True,
            if_null="no onset known",
        ),
        p.number(
            "… above persistence",
            "Average precision minus that of 'the same class as now'. Below 0: the model is worse than nothing;"
            " retrain, or go back: set the alias `champion` on an older version (docs/retrain.md).",
            _fleet("onset_average_precision - persistence_onset_average_precision"),
            "none",
            p.falling(0, 0.05),
            size=(4, 4),
            decimals=2,
            per_row=True,
            if_null="no onset known",
        ),
        p.number(
            "Macro F1 gain",
            "Mean F1 over the four classes minus persistence's. Slightly below 0 can be right for a model that warns"
            " early; far below is not.",
            _fleet("macro_f1 - persistence_macro_f1"),
            "none",
            p.falling(-0.1, 0),
            size=(4, 4),
            decimals=2,
            per_row=True,
        ),
        p.number(
            "Brier score",
            "Mean squared error of the probability of Poor or Bad: 0 is perfect. Far above the share of Poor and Bad"
            " windows: the probabilities cannot be trusted as they stand.",
            _fleet("congested_brier"),
            "none",
            p.rising(0.15, 0.3),
            size=(4, 4),
            decimals=3,
            per_row=True,
        ),
        p.number(
            "Features differ",
            "Decisions whose features at the access point and in the stream job differ, though the job had all batches."
            " Must be 0: both run one program on the same rows. Otherwise stop promoting and compare the programs'"
            " versions.",
            f"SELECT {known('sum(features_differ)')} AS differ FROM oal.prediction_1m WHERE $__timeFilter(t) AND {APS}",
            "none",
            p.rising(1, 1),
            size=(4, 4),
        ),
        p.number(
            "Features lacked input",
            "Decisions whose features differ because batches that the access point had did not come to the job. They"
            " say nothing against models or programs, and nothing is trained on them: see gaps and late batches.",
            f"SELECT {known('sum(features_lacked)')} AS lacked FROM oal.prediction_1m WHERE $__timeFilter(t) AND {APS}",
            "none",
            size=(4, 4),
        ),
    ]


def board():
    b = Board(
        "oal-model",
        "Do the trees say what comes, better than 'the same class as now' would, and which tree has every access"
        " point?",
        time="now-6h",
        refresh="1m",
        variables=[*ap_variables(), variable("model", "Model", "Models that decided in the time shown", MODELS)],
    )
    b.row("Is it good? (all access points)")
    b.add(*verdicts()).add_firing()
    b.row("Over time")
    b.add(
        p.series(
            "Onset precision and recall",
            "Precision: alarms in calm that were followed by Poor or Bad. Recall: congestions that were foreseen."
            " Recall falling: the air changed, retrain. Precision falling: raise the policy's threshold.",
            f"""SELECT $__timeInterval(t) AS time, toString(source) AS made_by, \
sumIf(predictions, {CALM} AND {CAME} AND {WARNED}) / nullIf(sumIf(predictions, {CALM} AND {WARNED}), 0) AS precision,
  sumIf(predictions, {CALM} AND {CAME} AND {WARNED}) / nullIf(sumIf(predictions, {CALM} AND {CAME}), 0) AS recall
{JUDGED} GROUP BY time, made_by ORDER BY time, made_by""",
            "percentunit",
            "ratio",
            name="${__field.name} ${__field.labels.made_by}",
            most=1,
        ),
        p.series(
            "Accuracy, against persistence",
            "Share of predictions that came true, and what 'the same class as now' would have had. The lines should not"
            " touch for long.",
            f"""SELECT $__timeInterval(t) AS time, toString(source) AS made_by, \
sumIf(predictions, predicted = class) / sum(predictions) AS model, \
sumIf(predictions, class_now = class) / sum(predictions) AS persistence
{JUDGED} GROUP BY time, made_by ORDER BY time, made_by""",
            "percentunit",
            "share right",
            name="${__field.name} ${__field.labels.made_by}",
            most=1,
        ),
        p.series(
            "Online trees: candidates against what is in force",
            "Mean onset average precision on later items, last day of the time shown at most. Candidate and in force"
            " falling together: the task got harder; in force alone: drift, and a tree will be shipped.",
            f"""-- A row a second and access point: the last day at most.
SELECT $__timeInterval(ts) AS time, avgIf(candidate_onset_ap, NOT isNaN(candidate_onset_ap)) AS candidate, \
avgIf(in_force_onset_ap, NOT isNaN(in_force_onset_ap)) AS `in force`,
  avgIf(persistence_onset_ap, NOT isNaN(persistence_onset_ap)) AS persistence
FROM oal.tree_decision WHERE {LAST_DAY} AND {APS} GROUP BY time ORDER BY time""",
            "none",
            "average precision",
            colours={"candidate": TEAL, "in force": OK, "persistence": PLAIN},
            most=1,
        ),
        p.series(
            "Drift",
            "Statistic of the online trainer's drift detector: mean and largest of the access points. A peak should be"
            " followed by a tree that is shipped.",
            "SELECT $__timeInterval(ts) AS time, avg(d.drift) AS mean, max(d.drift) AS largest FROM oal.tree_decision"
            f" AS d WHERE {LAST_DAY} AND {APS} GROUP BY time ORDER BY time",
            "none",
            "statistic",
            colours={"mean": WARN, "largest": PLAIN},
            whole=False,
        ),
        p.series(
            "Trees shipped and held back",
            "Trees that the online trainer fitted per interval, by what became of them and why. Only *shipped*:"
            " hysteresis is too weak; never *shipped* for a day with drift: look at the trainer's log.",
            f"""SELECT $__timeInterval(ts) AS time, concat(toString(action), ': ', reason) AS outcome, count() AS trees
FROM oal.tree_decision WHERE {LAST_DAY} AND {APS} GROUP BY time, outcome ORDER BY time, outcome""",
            "none",
            "trees",
            bars=True,
            stack=True,
            name="${__field.labels.outcome}",
        ),
        p.series(
            "Time of a decision at the access points",
            "Features and tree, mean and largest. Above a millisecond an access point has no room for its next tick:"
            " ship smaller trees.",
            "SELECT $__timeInterval(t) AS time, sum(eval_ns_sum) / sum(predictions) AS mean,"
            f" toFloat64(max(eval_ns_max)) AS largest FROM oal.prediction_1m WHERE $__timeFilter(t) AND {APS} GROUP BY"
            " time ORDER BY time",
            "ns",
            "time",
            colours={"mean": TEAL, "largest": PLAIN},
        ),
    )
    b.row("What is wrong with it")
    b.add(
        p.rows(
            "Confusion matrix",
            "Each row is a class that came true; the cells say what share of it was predicted as what. Mass to the left"
            " of the diagonal: congestion that was not seen coming.",
            f"""SELECT toString(class) AS came_true, {SAID_SHARES}, \
sum(predictions) AS decisions
{JUDGED} GROUP BY class ORDER BY class""",
            {f"said {name}": "percentunit" for name in CLASS_NAMES},
            size=(12, 7),
        ),
        p.bars(
            "Calibration",
            "Of the decisions with this confidence: how many came true. Bars of one length: the confidence can be taken"
            " at its word. *right* shorter: the model is too sure, retrain with later data.",
            f"""SELECT concat(toString(floor(confidence_permille / 100) * 10), ' %') AS confidence, \
round(sum(predictions * confidence_permille) / sum(predictions) / 1000, 3) AS claimed,
  round(sumIf(predictions, predicted = class) / sum(predictions), 3) AS right {JUDGED} GROUP BY confidence \
ORDER BY claimed""",
            "percentunit",
            "share of decisions",
            "confidence",
            colours={"claimed": PLAIN, "right": OK},
            most=1,
            size=(12, 7),
        ),
        p.rows(
            "How early it warns",
            "Per access point, last hour of the time shown at most: congestions with a warning, and how long before."
            " Under 200 ms control has no time to act.",
            may_be_empty(
                ONSETS_RARE,
                f"""SELECT site, ap_id, {MODEL} AS made_by, version, onsets, onsets_warned, warned_ratio, \
lead_p50_ms, lead_p90_ms
FROM oal.v_lead_time({last_of_range('1 HOUR')}) WHERE {APS} AND {CHOSEN} ORDER BY onsets DESC LIMIT 100""",
            ),
            {"warned_ratio": "percentunit", "lead_p50_ms": "ms", "lead_p90_ms": "ms"},
            coloured={"lead_p50_ms": p.falling(100, 200)},
            size=(24, 7),
        ),
        p.rows(
            "Quality by access point",
            "Worst against persistence first; *Persistence*: the accuracy of 'the same class as now'. Below 0 for one"
            " access point only: its own tree is wrong, it will be replaced; for many: the fleet's model is.",
            f"""SELECT site, ap_id, toString(source) AS made_by, judged_predictions, onsets, accuracy, \
persistence_accuracy, onset_precision, onset_recall, lead_p50_ms, onset_average_precision,
  round(onset_average_precision - persistence_onset_average_precision, 4) AS above_persistence
FROM oal.v_quality({RANGE}) WHERE per = 'ap' AND {APS} ORDER BY above_persistence ASC NULLS LAST, ap_id LIMIT 200""",
            {
                "accuracy": "percentunit",
                "persistence_accuracy": "percentunit",
                "onset_precision": "percentunit",
                "onset_recall": "percentunit",
                "lead_p50_ms": "ms",
            },
            coloured={"above_persistence": p.falling(0, 0.05)},
            size=(24, 8),
        ),
    )
    b.row("Do the features still come as they did in training")
    b.add(
        p.rows(
            "Features that moved most",
            "PSI of each feature against the items that the champion was trained on: the last look of the time shown,"
            " over the 24 h before it. Below 0.1 the same, above 0.25 another population. *All*: everything that the"
            " version is for, together. One access point above: it differs from the others; all of them: retrain"
            " (docs/retrain.md). What had too few items has no row.",
            may_be_empty(
                "a champion that was trained before bins were kept, or from a file of others' items, is not compared",
                f"""SELECT model, version, if(ap_id = '', 'All', ap_id) AS access_point, feature, \
round(argMax(psi, ts), 3) AS last_psi, argMax(items, ts) AS compared_items, max(ts) AS looked
FROM oal.feature_drift WHERE ts >= {FROM} AND ts <= {TO} AND (ap_id = '' OR {APS}) \
GROUP BY model, version, ap_id, feature ORDER BY last_psi DESC, access_point, feature LIMIT 200""",
            ),
            {"last_psi": "none", "looked": "dateTimeAsIso"},
            coloured={"last_psi": p.rising(0.1, 0.25)},
            size=(24, 8),
        ),
    )
    b.row("Which model is where")
    b.add(
        p.rows(
            "Model of every access point",
            "What each reports to have in force now. *Rejected since* above 0: it refused something newer, *Last"
            " reason* says why (see `bundle_reasons` in the schema's reference).",
            f"""SELECT ap_id, {MODEL} AS made_by, version, since, rejected_since, \
ifNull(last_reason, '') AS last_reason, waits_for_activation, reports_applied, reports_rejected, last_report
FROM oal.v_bundle_state WHERE {APS} ORDER BY rejected_since DESC, last_report, ap_id LIMIT 1000""",
            {"since": "dateTimeAsIso", "last_report": "dateTimeAsIso"},
            coloured={"rejected_since": p.rising(1, 1)},
            size=(24, 8),
        ),
        p.rows(
            "Releases",
            "Bundles released in the last day of the time shown, newest first, and how soon access points had them."
            " *Rejected by*: look at *Model of every access point*.",
            may_be_empty(
                "a fleet with a good model releases nothing for days",
                f"""SELECT released, {MODEL} AS made_by, toString(slot) AS slot, scope, version, nodes, \
bytes, reason AS why, aps_applied, aps_rejected, applied_after_p50_ms
FROM oal.v_releases({last_of_range('1 DAY')}) ORDER BY released DESC LIMIT 100""",
            ),
            {"released": "dateTimeAsIso", "bytes": "bytes", "applied_after_p50_ms": "ms"},
            coloured={"aps_rejected": p.rising(1, 5)},
            size=(24, 8),
        ),
    )
    return b
