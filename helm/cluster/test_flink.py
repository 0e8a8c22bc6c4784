"""Flink as the chart starts it, run by hand where a kubelet would run it: real JobManager and TaskManager, real job,
high availability in ConfigMaps of the real API server; Kafka and ClickHouse of platform/local."""
import base64
import json
import subprocess
import sys

import pytest
from conftest import ROOT
from earlier_chart import earlier, unpack
from flink_pods import FlinkPods
from test_cluster import install

sys.path[:0] = [str(ROOT / folder) for folder in ("platform/local/src", "platform/backup/tests", "schema/src", "tests")]

LIMIT_S = 240
PROGRAM = ROOT / "platform" / "images" / "stream-jobs" / "oal-flink"
JOB = ROOT / "stream-jobs" / "target" / "stream-jobs.jar"


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    from oal_local.platform import Platform
    with Platform(tmp_path_factory.mktemp("platform") / "state", ports="auto", only=["kafka", "clickhouse"],
                  migrate=False, partitions=4) as running:
        yield running


@pytest.fixture
def pods(cluster, namespace, platform, tmp_path):
    made = FlinkPods(cluster, namespace, platform, tmp_path)
    yield made
    made.stop()


def migrate(platform, tree, folder: str) -> None:
    """As the migrate Job of a chart of that tree does."""
    state = platform.state
    subprocess.run([tree / folder, "--url", platform.clickhouse.http_url, "--user", "admin", "--password-file",
                    state.secrets / "clickhouse-admin.password"], check=True, stdout=subprocess.DEVNULL)


def runs(cluster, pods, *, at_least: int = 1) -> dict:
    """The job when it runs and has completed so many checkpoints."""
    found = {}

    def ready() -> bool:
        found.update(pods.job() or {})
        return bool(found) and bool(found["completed"]) and pods.get(
            f"/jobs/{found['id']}/checkpoints")["counts"]["completed"] >= at_least
    cluster.wait("the job runs and has a checkpoint", ready, LIMIT_S)
    return found


def pointers(cluster, namespace, job: str) -> list[str]:
    """Where the API server says that the newest checkpoints are."""
    text = cluster.kubectl("-n", namespace, "get", "configmap", f"oal-flink-{job}-config-map", "-o", "json")
    return [base64.b64decode(value).decode(errors="replace") for key, value in json.loads(text)["data"].items()
            if key.startswith("checkpointID")]


def test_an_upgrade_from_0_2_0_goes_on_from_its_checkpoint_and_follows_its_values(cluster, namespace, platform, pods,
                                                                                 tmp_path):
    """The job of then by the chart of then; then `helm upgrade`, and the job of now on what is left."""
    tree = earlier.tree()
    chart = unpack(tmp_path / "earlier")
    migrate(platform, tree, "clickhouse/migrate")
    install(cluster, namespace, *pods.values(), chart=chart)
    pods.start(tree / "images" / "stream-jobs" / "oal-flink", tree / "stream-jobs" / "target" / "stream-jobs.jar")
    before = runs(cluster, pods, at_least=3)
    assert (before["interval_ms"], before["parallelism"], before["restored"]) == (1000, 2, None)
    assert pointers(cluster, namespace, before["id"])

    migrate(platform, ROOT, "clickhouse/migrate")
    changed = pods.values(checkpoints={"interval": "3s"}, taskManager={"slots": 1})
    install(cluster, namespace, *changed, command="upgrade")
    pods.stop()
    pods.start(PROGRAM, JOB)
    after = runs(cluster, pods)
    assert after["id"] == before["id"] and after["restored"]["id"] >= before["completed"]["id"]
    assert (after["interval_ms"], after["parallelism"]) == (3000, 1)


def test_checkpoints_in_s3_outlive_both_pods(cluster, namespace, platform, pods, tmp_path):
    """The job goes on from the bucket alone: another volume, another pod, and what the ConfigMaps point at."""
    from flow import assert_every_row_once, until_drained
    from s3_store import Store
    from virtual_ap import VirtualFleet
    migrate(platform, ROOT, "clickhouse/migrate")
    store = Store(tmp_path, "checkpoints")
    fleet = None
    try:
        # A name, of which a bucket could be made a part; of an address never: path style is asked for and used.
        endpoint = store.url.replace("127.0.0.1", "localhost")
        s3 = {"bucket": store.bucket, "endpoint": endpoint, "port": int(endpoint.rsplit(":", 1)[1]), "secret": "store"}
        install(cluster, namespace, *pods.values(checkpoints={"storage": "s3", "s3": s3}))
        keys = tmp_path / "keys"
        keys.mkdir()
        (keys / "access-key").write_text(store.access)
        (keys / "secret-key").write_text(store.secret)
        pods.start(PROGRAM, JOB, keys)
        before = runs(cluster, pods)
        fleet = VirtualFleet(platform, seed=501).start()
        begun = fleet.made()
        cluster.wait("batches are made", lambda: fleet.made() >= begun + 30, LIMIT_S)
        prefix = f"{namespace}-oal"
        assert any(name.endswith("/_metadata") for name in store.objects(f"{prefix}/checkpoints"))
        assert all(f"s3://{store.bucket}/{prefix}/ha" in pointer
                   for pointer in pointers(cluster, namespace, before["id"]))

        pods.stop()
        cluster.wait("batches are made meanwhile", lambda: fleet.made() >= begun + 60, LIMIT_S)
        assert not list((tmp_path / "volume").iterdir()), "something was kept outside of the bucket"
        pods.start(PROGRAM, JOB, keys)
        after = runs(cluster, pods)
        assert after["restored"]["id"] >= before["completed"]["id"]
        assert after["restored"]["external_path"].startswith(f"s3://{store.bucket}/{prefix}/checkpoints")
        fleet.stop()
        made = fleet.ledger(platform)
        until_drained(platform, made)
        assert_every_row_once(platform, made)
    finally:
        if fleet:
            fleet.abandon()
        pods.stop()
        store.stop()
