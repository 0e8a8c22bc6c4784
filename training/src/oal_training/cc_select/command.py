"""`oal-train cc-select`."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from oal_training.arguments import UNITS_S, instant, log
from oal_training.errors import TrainingError

POLICY = "cc-select"


def duration(text: str) -> float:
    """Seconds of a length of time such as 90m."""
    if text[-1:] in UNITS_S and text[:-1].replace(".", "", 1).isdigit():
        return float(text[:-1]) * UNITS_S[text[-1]]
    raise argparse.ArgumentTypeError(f"{text!r} is no length of time such as 90m or 1h")


def register(add) -> None:
    """Add the command to `oal-train`."""
    parser = add(
        "cc-select",
        help="the congestion control of the next connection, from sessions that hosts had",
        description=(
            "Learn from rows of sender_session which congestion control the next connection to a network should have:"
            " a session's features, and what each candidate of policies/cc-select was worth on that network, of other"
            " sessions near in time. Judged on networks that were left out, against staying and against the best"
            " candidate for all. Defaults are those of policies/cc-select/experiment.yaml."
        ),
    )
    data = parser.add_argument_group("sessions")
    data.add_argument("--config", metavar="FILE", type=Path, help="YAML: sections mlflow, clickhouse")
    data.add_argument("--clickhouse", metavar="URL", help="HTTP address of ClickHouse instead of that in --config")
    data.add_argument("--clickhouse-user", default="analyst", metavar="NAME", help="default: analyst")
    data.add_argument("--clickhouse-password-file", metavar="FILE")
    data.add_argument("--database", default="oal", help="default: oal")
    data.add_argument("--host", metavar="ID", help="only of this host")
    data.add_argument(
        "--from", dest="begin", metavar="TIME", type=instant, help="ISO 8601 (UTC unless it says otherwise), or an age"
    )
    data.add_argument("--to", dest="end", metavar="TIME", type=instant, help="likewise; default now")
    learn = parser.add_argument_group("what is learned")
    learn.add_argument("--utility", metavar="NAME", help="of grid.yaml: speed, or queue, which has a price")
    learn.add_argument("--window", dest="window_s", metavar="TIME", type=duration, help="sessions so near say, as 1h")
    learn.add_argument("--least", dest="least_sessions", metavar="N", type=int, help="so many sessions of a candidate")
    learn.add_argument("--min-bytes", metavar="N", type=int, help="acknowledged, or a session says nothing")
    learn.add_argument("--least-lessons", metavar="N", type=int, help="fewer are refused")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write cc-select.md and lessons.parquet there")
    mlflow = parser.add_argument_group("MLflow")
    mlflow.add_argument("--tracking-uri", metavar="URL", help="instead of that in --config")
    mlflow.add_argument("--mlflow-user", metavar="NAME")
    mlflow.add_argument("--mlflow-password-file", metavar="FILE")
    mlflow.add_argument(
        "--register", metavar="NAME", nargs="?", const=POLICY, help=f"make the tree a version; of {POLICY} without NAME"
    )
    mlflow.add_argument("--retrain", metavar="NAME/VERSION", help="repeat the fit of a version on sessions until now")
    mlflow.add_argument("--result", metavar="FILE", type=Path, help='write {"version": n, "run_id": …} there')
    parser.set_defaults(run=run)


def run(arguments) -> int:
    """Read, judge, fit, print, log, register."""
    from oal_training.cc_select import record, sessions
    from oal_training.places import Places

    places = Places.of(arguments)
    if not places.connection:
        raise TrainingError("sessions are in ClickHouse: give --config with a section clickhouse, or --clickhouse")
    if (arguments.register or arguments.retrain) and not places.tracking:
        raise TrainingError("a version is MLflow's: give --tracking-uri, or --config with a section mlflow")
    if places.tracking:
        places.tracking.check()
    experiment, source, retrained_from = _wanted(arguments, places)
    log(f"reading sessions{' of ' + source['host'] if source['host'] else ''}")
    found = sessions.of_clickhouse(places.connection, POLICY, source["begin_us"], source["end_us"], source["host"])
    made = fit(found, experiment, log)
    page = record.markdown(made)
    print(page, end="")
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / record.PAGE_FILE).write_text(page, encoding="utf-8")
        record.write_lessons(arguments.out / record.LESSONS_FILE, made.lessons)
    if places.tracking:
        kept = record.log(places.tracking, made, source, arguments.register, retrained_from)
        print(f"\nMLflow run {kept['run_id']}")
        if kept["version"]:
            print(_next(arguments.register, kept["version"]))
        if arguments.result:
            temporary = arguments.result.with_name(arguments.result.name + ".tmp")
            temporary.write_text(json.dumps(kept) + "\n", encoding="utf-8")
            temporary.replace(arguments.result)
    return 0


def _wanted(arguments, places) -> tuple:
    """(experiment, what is read of ClickHouse, number of the version that is repeated or None)."""
    from oal_training import tracking
    from oal_training.cc_select import experiment as experiments

    retrained_from, host, length_us = None, arguments.host, None
    if arguments.retrain:
        name, retrained_from = tracking.split_version(arguments.retrain)
        origin = tracking.origin(places.tracking, name, retrained_from)
        found = experiments.parse(origin.experiment, origin.what)
        was = json.loads(origin.tags.get("oal.source") or "{}")
        host = host or was.get("host")
        length_us = was["end_us"] - was["begin_us"] if "begin_us" in was else None
        log(f"repeating {origin.what}")
    else:
        found = experiments.load()
    names = ("utility", "window_s", "least_sessions", "min_bytes", "least_lessons")
    found = found.changed(**{name: getattr(arguments, name) for name in names})
    end_us = arguments.end or int(time.time() * 1e6)
    begin_us = arguments.begin or end_us - (length_us or round(found.last_s * 1e6))
    if begin_us >= end_us:
        raise TrainingError("--from is not before --to")
    return found, {"host": host, "begin_us": begin_us, "end_us": end_us}, retrained_from


def fit(found, experiment, log=log):
    """Lessons of sessions, their judge and the tree (record.Made). TrainingError when there is too little to learn."""
    import numpy as np

    from oal_training.cc_select import choice, features, lessons, record

    rules, seen = experiment.rules(), experiment.seen()
    of_row = features.of_rows(POLICY)
    vector = lambda row: None if (values := of_row(row)) is None else features.hidden(np.array(values), seen)
    make = lambda part: lessons.of(part, rules, vector)
    log(f"{len(found)} sessions to {len(np.unique(found.networks()))} networks")
    every = make(found)
    networks = len(np.unique(every.network))
    if len(every) < experiment.least_lessons:
        raise TrainingError(_too_few(found, every, networks, experiment))
    log(f"{len(every)} lessons of {networks} networks")
    if networks >= 2:
        folds, split = choice.by_network(every), "on networks that were left out"
    else:
        ts_us = found.whole("ts_us")
        early = ts_us < np.median(every.ts_us)
        folds, split = [(make(found.part(early)), make(found.part(~early)))], "on later sessions of the one network"
        if not all(len(part) for part in folds[0]):
            raise TrainingError(
                "one network has something to compare, and half of its time has no lesson to judge by: take a longer"
                " time (--from)"
            )
    confidence = record.confidence()
    judged = choice.judge(folds, confidence)
    return record.Made(
        experiment, every, len(found), choice.fitted(every, confidence), judged, split, found.lineage
    )


def _too_few(found, every, networks: int, experiment) -> str:
    from oal_training.cc_select import record
    from oal_training.cc_select.experiment import candidates, name_of

    all_networks = len(set(found.networks().tolist()))
    return (
        f"too few lessons: {len(every)} of {len(found)} sessions, and {experiment.least_lessons} are asked for"
        f" (--least-lessons). A lesson is a session to a network where {experiment.least_sessions} other ones within"
        f" {experiment.window_s / 60:g} minutes had its congestion control, and {experiment.least_sessions} had another"
        f" one of {', '.join(map(name_of, candidates()))}: so it is with {networks} of {all_networks} networks. Left"
        f" out: {record.left_out(every)}. What helps: let hosts explore (cc_explore_permille of the policy's file in"
        " policies/in-force), or give networks another congestion control by hand for a while (docs/host-agent.md,"
        ' "Congestion controls by hand"); a longer time (--from 7d); a wider window (--window 3h)'
    )


def _next(name: str, version: int) -> str:
    return (
        f"registered as {name}/{version}. Next, in MLflow's page: Models, {name}, Version {version}, Aliases, champion."
        " The gate reads the figures above (docs/gates.md); what hosts may do with it a file in policies/in-force says"
        " (examples/cc-select.yaml): without one they are in shadow."
    )
