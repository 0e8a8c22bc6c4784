"""The job goes from 2 to 4 to 1 subtasks by a savepoint each time, with other settings: nothing lost, nothing twice."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from flow import until
from oal_local import checkpoints, flink, kafka

from soak.checks import complete, say
from soak.figures import Figure
from soak.stage import Stage, stage

#: Each start: what changes in the platform's settings.
STARTS = (
    {"parallelism": 4, "job_properties": {"sink.parallelism": "2", "pipeline.lateness.ms": "8000"}},
    {"parallelism": 1, "job_properties": {"sink.parallelism": "1", "pipeline.lateness.ms": "5000"}},
)


def _post(on: Stage, path: str, body: dict) -> dict:
    state, settings = on.platform.state, on.platform.settings
    request = urllib.request.Request(flink.rest_url(settings) + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30, context=kafka.tls(state, "operator")) as answer:
        return json.load(answer)


def stop_with_savepoint(on: Stage) -> Path:
    """The savepoint's folder; the job has ended, and the JobManager is stopped."""
    job = on.platform.flink.get("/jobs/overview")["jobs"][0]["jid"]
    target = on.platform.state.flink / "savepoints"
    target.mkdir(exist_ok=True)
    known = set(target.iterdir())
    _post(on, f"/jobs/{job}/stop", {"targetDirectory": f"file://{target}", "drain": False})
    until("the job has ended", lambda: on.platform.flink.get("/jobs/overview")["jobs"][0]["state"] == "FINISHED")
    on.platform.stop("jobmanager")
    made = [folder for folder in target.iterdir() if folder not in known and (folder / "_metadata").exists()]
    assert len(made) == 1, f"savepoints made: {made}"
    return made[0]


def start_from(on: Stage, savepoint: Path, changes: dict) -> None:
    """Where the next JobManager looks for the newest checkpoint lies the savepoint."""
    run = checkpoints.runs(on.platform.state.checkpoints)[-1][1]
    newest = max((number for number, _ in checkpoints.complete(run)), default=0)
    (run / "savepoint").mkdir()
    savepoint.rename(run / "savepoint" / f"chk-{newest + 1}")
    on.platform.changes.update(changes)
    on.platform.up()


def rescale() -> list[Figure]:
    """2 → 4 → 1 subtasks by stop-with-savepoint and start, with another lateness and number of writers."""
    drill = "rescale"
    with stage(partitions=4, parallelism=2) as on:
        fleet = on.fleet(4)
        on.flowing(fleet)
        for changes in STARTS:
            say(f"{drill}: to {changes['parallelism']}")
            start_from(on, stop_with_savepoint(on), changes)
            on.flowing(fleet)
            tasks = on.platform.flink.get("/jobs/overview")["jobs"][0]["tasks"]["running"]
            say(f"{drill}: {tasks} tasks run")
        fleet.stop()
        return [Figure(f"{drill}.starts", len(STARTS), "starts", f"from a savepoint, with {STARTS}")] + complete(
            on.platform, fleet, drill)
