"""An upgrade of an installation of version 0.2.0 that has data and work on its way: that version's own Kafka, Flink,
ClickHouse, job and access points, then this version's on the same folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import earlier
import pytest
from flow import assert_every_row_once, until, until_drained
from items import assert_instants_once, instants, until_items_drained
from stored_rows import rows
from virtual_ap import VirtualFleet

INTERVAL_S, SLOTS = 3, 1  # neither is what the earlier version had
DECISION_US = 100_000
LET_GO = 32  # instants at the change: items of 1.2 s, and the 2 s for which a label waits for repetitions
READY_SECONDS = 600  # of a service, on a machine that does much else


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """What the earlier version left: its folder, the rows that it had, and all that its access points sent. With
    OAL_TEST_UPGRADE=DIR it is in DIR, and what is there already is taken: for work on the second half."""
    kept = os.environ.get("OAL_TEST_UPGRADE")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("upgrade")
    state, out = folder / "state", folder / "before.json"
    if not out.exists():
        earlier_version(state, out)
    found = json.loads(out.read_text())
    spans = found["access_points"]
    return SimpleNamespace(
        state=state, tables=found["tables"], ap_ids=sorted(spans), begin_us=lambda ap: spans[ap][0],
        end_us=lambda ap: spans[ap][1],
        ledger=Counter({tuple(key): number for *key, number in found["ledger"]}))


def earlier_version(state: Path, out: Path) -> None:
    """Run it with its own programs, until there are rows, and work that waits; what it left goes to `out`."""
    done = subprocess.run([sys.executable, earlier.ROOT / "tests" / "earlier_platform.py", earlier.tree(), state, out],
                          stdin=subprocess.DEVNULL, timeout=2400, cwd=state.parent)
    assert done.returncode == 0


@pytest.fixture(scope="module")
def upgraded(before):
    from oal_local.platform import Platform
    Platform.wait_ready.__defaults__ = (READY_SECONDS,)
    jar = earlier.ROOT / "stream-jobs" / "target" / "stream-jobs.jar"
    with Platform(before.state, ports="auto", only=["data"], checkpoint_interval=f"{INTERVAL_S}s", parallelism=SLOTS,
                  job_jar=str(jar), policies=str(earlier.ROOT / "policies" / "in-force")) as platform:
        yield platform


def job(platform) -> dict:
    """Of the one job: its state, tasks, parallelism, checkpoints."""
    (one,) = platform.flink.get("/jobs/overview")["jobs"]
    vertices = platform.flink.get(f"/jobs/{one['jid']}")["vertices"]
    return one | {"parallelism": max(v["parallelism"] for v in vertices),
                  "interval_ms": platform.flink.get(f"/jobs/{one['jid']}/checkpoints/config")["interval"],
                  "restored": platform.flink.get(f"/jobs/{one['jid']}/checkpoints")["latest"].get("restored")}


def test_every_row_of_before_is_there(before, upgraded):
    assert sum(len(table["rows"]) for table in before.tables.values()) > 3_000
    for table, was in before.tables.items():
        if not was["rows"]:
            continue
        now = Counter(rows(upgraded, table, was["columns"]))
        lost = Counter(was["rows"]) - now
        assert not lost, f"{table}: {sum(lost.values())} of {len(was['rows'])} rows are gone or changed"


def test_the_job_goes_on_from_its_checkpoint_and_follows_the_new_values(before, upgraded):
    found = until("every task runs", lambda: (now := job(upgraded))["state"] == "RUNNING" and now["tasks"][
        "running"] == now["tasks"]["total"] and now)
    assert found["restored"], "the job began without its state"
    assert found["interval_ms"] == INTERVAL_S * 1000 and found["parallelism"] == SLOTS


def test_what_was_on_its_way_is_stored_once(before, upgraded):
    until_drained(upgraded, before.ledger)
    until_items_drained(upgraded, before)
    assert_every_row_once(upgraded, before.ledger)
    assert_instants_once(upgraded, before, contiguous=False)
    # State of 0.2.0 knows no drops: its open windows are let go, and the job says so (LabelBuckets.read).
    for table in ("label", "item"):
        for ap, count, _, first, last in instants(upgraded, table, before):
            missing = (last - first) // DECISION_US + 1 - count
            assert missing <= LET_GO, f"{missing} instants of {ap} in {table} are missing"


def test_access_points_go_on(upgraded):
    fleet = VirtualFleet(upgraded, seed=1001).start()
    try:
        until("batches of this version", lambda: fleet.made() >= 60)
        fleet.stop()
    except BaseException:
        fleet.abandon()
        raise
    made = fleet.ledger(upgraded)
    until_drained(upgraded, made)
    assert_every_row_once(upgraded, made)
