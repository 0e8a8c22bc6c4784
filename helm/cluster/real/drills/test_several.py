"""Two nodes, three brokers, two ClickHouse servers, two replicas of the push service, nightly backups.

Volumes are on both nodes' disk, as a network disk would be: what a drain moves finds its rows again. The tests share
one release and run in this order.
"""
import json
import time

import pytest
from access_point import AccessPoint
from figures import measured
from installation import SMALL, Installation, ready, write_values

# All pods fit on one node of two cores: what a drain moves finds room.
SEVERAL = {
    "kafka": {"replicas": 3, "access": {"hosts": ["oal.example.org"] * 3},
              "resources": {"requests": {"cpu": "100m", "memory": "768Mi"}, "limits": {"memory": "1536Mi"}}},
    "flink": {"taskManager": {"cpu": "200m"}},
    "clickhouse": {"shards": 2, "backup": {"enabled": True, "size": "5Gi"},
                   "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "3Gi"}}},
    "push": {"replicas": 2},
    "backup": {"enabled": True, "keep": 2, "fullEvery": 1}  # what a later one builds on is kept beside
}


@pytest.fixture(scope="module")
def oal(cluster):
    several = cluster.folder / "several.json"
    several.write_text(json.dumps(SEVERAL))
    oal = Installation(cluster, values=(SMALL, write_values(cluster.folder / "standins.json"), several))
    oal.create()
    begin = time.monotonic()
    oal.helm("install")
    measured("helm install --wait, 3 brokers, 2 shards, 2 nodes", time.monotonic() - begin)
    return oal


@pytest.fixture(scope="module")
def access_points(oal):
    made = [AccessPoint(oal, f"ap-010{number}") for number in range(2)]
    for ap in made:
        ap.enrol()
        ap.start()
    oal.until("rows of both access points", lambda: oal.fresh(2))
    return made


def node_of(pod: dict) -> str:
    return pod["spec"]["nodeName"]


def test_replicas_are_on_different_nodes_and_shared_claims_on_one(oal):
    for component in ("push", "kafka"):
        assert len({node_of(p) for p in oal.pods(component)}) == 2, component
    flink = {node_of(p) for part in ("flink-jobmanager", "flink-taskmanager") for p in oal.pods(part)}
    assert len(flink) == 1, "JobManager and TaskManager share a volume that one node may mount"


def test_both_shards_have_rows_and_each_answers_for_all(oal, access_points):
    assert oal.number("SELECT uniqExact(ap_id) FROM oal.batch") == 2
    assert oal.completeness()["missing"] == 0


def test_the_loss_of_a_broker_loses_nothing(oal, access_points):
    begin = time.time()
    oal.k("delete", "pod", "oal-kafka-1", "--force", "--grace-period=0")
    oal.until("every pod is ready", oal.all_ready, 240)
    oal.until("fresh rows", lambda: oal.fresh(2))
    measured("every pod ready again after the loss of one of three brokers", time.time() - begin)
    oal.until("nothing is missing", lambda: oal.completeness()["missing"] == 0)
    assert oal.completeness()["doubled"] == 0


def test_a_node_is_drained(oal, access_points):
    """As an operator does before maintenance; budgets let one of each kind go at a time."""
    name = oal.cluster.nodes[1].name
    begin = time.time()
    oal.cluster.kubectl("drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=540s")
    measured("kubectl drain of one of two nodes", time.time() - begin)
    try:
        oal.until("every pod is ready on the other node", lambda: oal.all_ready() and all(
            node_of(p) != name for p in oal.services()), 300)
        oal.until("fresh rows", lambda: oal.fresh(2))
        oal.until("nothing is missing", lambda: oal.completeness()["missing"] == 0)
        assert oal.completeness()["doubled"] == 0
    finally:
        oal.cluster.kubectl("uncordon", name)


def test_backups_are_pruned(oal, access_points):
    def one(number: int) -> None:
        oal.k("create", "job", f"night-{number}", "--from=cronjob/oal-backup")
        oal.k("wait", "--for=condition=complete", f"job/night-{number}", "--timeout=300s")

    for number in range(3):
        one(number)
    def kept(shard: int) -> bool:
        """Those that container `sweep` left."""
        found = oal.k("exec", f"oal-clickhouse-{shard}-0", "-c", "clickhouse", "--", "ls",
                      "/var/lib/clickhouse-backups")
        return len(found.split()) == SEVERAL["backup"]["keep"]

    for shard in range(2):
        oal.until(f"shard {shard} has as many backups as are kept", lambda shard=shard: kept(shard))


def test_every_replica_is_ready_at_the_end(oal):
    assert all(map(ready, oal.services()))
