"""The loop on the running platform while its parts are killed: APs predict on; what was asked for meanwhile is done.

`make test-outages` runs it, on a platform of its own.
"""

from __future__ import annotations

import signal

import pytest
from flow import until
from looped import APS, nothing_rejected_or_lost, now_us, open_gates, other_version, promote, windows
from oal_local import loop
from oal_local.clickhouse import since


@pytest.fixture(scope="module", autouse=True)
def _gates_open(looped):
    open_gates(looped)


@pytest.mark.parametrize("service", ["push", "model-registry", "mlflow", "trainer"])
def test_a_killed_service_comes_back_in_the_right_state(looped, service):
    """SIGKILL, and at once the alias is set to another version: the APs predict on, and end with what it says."""
    version = other_version(looped)
    until("the trainer has windows", lambda: set(windows(looped, "1")) == set(looped.ap_ids))
    at = now_us()
    looped.platform.kill(service, signal.SIGKILL)
    until("MLflow takes the alias", lambda: loop.set_alias(looped.platform, "champion", version) or True)
    until("every AP predicts on", lambda: looped.predicting(at))
    until(f"every AP applied {loop.MODEL}/{version}", lambda: looped.applied(at, 1, version))
    until(f"{service} is back", lambda: looped.ready(service))
    if service == "trainer":
        before = looped.platform.clickhouse.rows(
            f"SELECT ap_id, max(items) AS n FROM oal.tree_decision WHERE ts < fromUnixTimestamp64Micro({at}) GROUP BY"
            " ap_id"
        )
        after = until("the trainer decides again for every AP", lambda:
                      (w := windows(looped, since(at))) and set(w) >= set(looped.ap_ids) and w)
        smaller = {row["ap_id"]: (row["n"], after[row["ap_id"]]) for row in before if after[row["ap_id"]] < row["n"]}
        assert not smaller, f"the first windows after the start hold less than before (by AP: before, after): {smaller}"


def test_a_killed_ap_starts_with_its_last_good_bundle(looped):
    """While the push service is away, so that what the AP predicts with can only come from its flash."""
    looped.platform.stop("push")
    looped.source.exporter.process.kill()
    looped.source.exporter.process.wait()
    at = now_us()
    looped.source.exporter.start()
    until(
        "every AP restored its bundle from flash",
        lambda: looped.count(f"SELECT uniqExact(ap_id) FROM oal.bundle_status WHERE state = 3 AND {since(at)}") == APS)
    until("and predicts", lambda: looped.predicting(at))
    # Flash is written once a minute at most, so it need not be the very last one.
    strange = looped.count(
        f"SELECT count() FROM oal.bundle_status WHERE state = 3 AND {since(at)} AND (ap_id, bundle) NOT IN (SELECT"
        f" ap_id, bundle FROM oal.bundle_status WHERE state = 1 AND NOT ({since(at)}))"
    )
    assert strange == 0, "an AP restored a bundle that it had never applied"
    others = looped.count(
        f"SELECT count() FROM oal.decision WHERE {since(at)} AND (ap_id, bundle) NOT IN (SELECT ap_id, bundle FROM"
        f" oal.bundle_status WHERE state = 3 AND {since(at)})"
    )
    assert others == 0, "an AP predicted with another bundle than the one from flash"
    looped.platform.start("push")
    looped.platform.wait_ready("push")
    promote(looped, other_version(looped))


def test_nothing_was_rejected_or_lost_on_the_way(looped):
    nothing_rejected_or_lost(looped)
