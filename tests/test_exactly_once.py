"""Acceptance 4: kill -9 of every part, and parts that stay away, cost no row and make none twice."""

from __future__ import annotations

import itertools
import os
import signal

import pytest
from flow import assert_every_row_once, until, until_drained, until_rows_flow
from items import assert_items_once, assert_labels_once, until_items_drained
from ledger import differences, kafka_ledger, totals
from virtual_ap import VirtualFleet

AWAY_S = float(os.environ.get("OAL_AWAY_SECONDS", "15"))  # 60 for the figures in the README
SEEDS = itertools.count(1)


@pytest.fixture
def fleet(platform):
    made = VirtualFleet(platform, seed=100 * next(SEEDS))
    made.start()
    yield made
    made.abandon()


def check(platform, fleet) -> None:
    """Stop the source, wait until all of it has arrived, and count."""
    fleet.stop()
    made = fleet.ledger()
    assert not differences(made, kafka_ledger(platform, fleet.ap_ids)), "what Kafka holds is not what was made"
    until_drained(platform, made)
    until_items_drained(platform, fleet)
    assert_every_row_once(platform, made)
    assert_labels_once(platform, fleet)
    assert_items_once(platform, fleet)
    print(f"\n  every row once: {totals(made)}")


def test_kill_9_of_every_service_in_turn(platform, fleet):
    until_rows_flow(platform, fleet.ap_ids)
    for service in ("taskmanager", "jobmanager", "kafka", "clickhouse"):
        killed = platform.kill(service, signal.SIGKILL)
        until(f"{service} runs again", lambda: platform.pid(service) != killed)
        platform.wait_ready(service)
        until_rows_flow(platform, fleet.ap_ids)
    check(platform, fleet)


def test_kill_9_of_all_services_at_once(platform, fleet):
    until_rows_flow(platform, fleet.ap_ids)
    services = ("taskmanager", "clickhouse", "kafka", "jobmanager")
    killed = {service: platform.kill(service, signal.SIGKILL) for service in services}
    for service in services:
        until(f"{service} runs again", lambda: platform.pid(service) != killed[service])
    until_rows_flow(platform, fleet.ap_ids)
    check(platform, fleet)


@pytest.mark.parametrize("service", ["clickhouse", "kafka"])
def test_a_service_that_stays_away(platform, fleet, service):
    until_rows_flow(platform, fleet.ap_ids)
    platform.stop(service)
    until_made = fleet.made() + AWAY_S / fleet.period_s * len(fleet.aps)
    until(f"{AWAY_S:.0f} s of batches made meanwhile", lambda: fleet.made() >= until_made, AWAY_S + 60)
    platform.start(service)
    platform.wait_ready(service)
    until_rows_flow(platform, fleet.ap_ids)
    check(platform, fleet)
