"""Acceptance 4: kill -9 of every part, and parts that stay away, cost no row and make none twice."""

from __future__ import annotations

import itertools
import os

import pytest
from flow import assert_every_row_once, kill, until, until_back, until_drained, until_rows_flow
from items import assert_instants_once, until_items_drained
from ledger import totals
from replay_fleet import ReplayFleet
from virtual_ap import VirtualFleet

AWAY_S = float(os.environ.get("OAL_AWAY_SECONDS", "15"))  # 60 for the figures in the README
SEEDS = itertools.count(1)


@pytest.fixture
def virtual(platform):
    """Made-up APs, whose every row is known."""
    made = VirtualFleet(platform, seed=100 * next(SEEDS)).start()
    yield made
    made.abandon()


@pytest.fixture
def replayed(platform):
    """The real exporter with captures of the lab."""
    made = ReplayFleet(platform).start()
    yield made
    made.abandon()


def check(platform, fleet, contiguous: bool) -> None:
    """Stop the source, wait until all of it has arrived, and count."""
    fleet.stop()
    made = fleet.ledger(platform)
    until_drained(platform, made)
    until_items_drained(platform, fleet)
    assert_every_row_once(platform, made)
    assert_instants_once(platform, fleet, contiguous)
    print(f"\n  every row once: {totals(made)}")


def test_kill_9_of_every_service_in_turn(platform, replayed):
    until_rows_flow(platform, replayed.ap_ids)
    for service in ("taskmanager", "jobmanager", "kafka", "clickhouse"):
        until_back(platform, service, kill(platform, service))
        until_rows_flow(platform, replayed.ap_ids)
    check(platform, replayed, contiguous=False)


def test_kill_9_of_all_services_at_once(platform, virtual):
    until_rows_flow(platform, virtual.ap_ids)
    killed = {service: kill(platform, service) for service in ("taskmanager", "clickhouse", "kafka", "jobmanager")}
    for service, pid in killed.items():
        until_back(platform, service, pid)
    until_rows_flow(platform, virtual.ap_ids)
    check(platform, virtual, contiguous=True)


def stays_away(platform, fleet, service: str) -> None:
    until_rows_flow(platform, fleet.ap_ids)
    platform.stop(service)
    enough = fleet.made() + AWAY_S / fleet.period_s * len(fleet.ap_ids)
    until(f"{AWAY_S:.0f} s of batches made meanwhile", lambda: fleet.made() >= enough, AWAY_S + 120)
    platform.start(service)
    until_rows_flow(platform, fleet.ap_ids)


def test_clickhouse_stays_away(platform, virtual):
    stays_away(platform, virtual, "clickhouse")
    check(platform, virtual, contiguous=True)


def test_kafka_stays_away(platform, replayed):
    stays_away(platform, replayed, "kafka")
    check(platform, replayed, contiguous=False)
