"""An upgrade from the chart of version 0.2.0 as it was, on a real API server with fake nodes: nothing immutable is
changed, every volume stays and is mounted where it was, Flink looks for its checkpoints where they are, and the Secrets
that pods mount are there. That rows and state survive: clickhouse/tests/test_migrate.py (rows),
stream-jobs' SavepointTest (the job's state), tests/test_upgrade.py (the whole, without Kubernetes)."""
import base64
import json
import subprocess
from pathlib import Path

import earlier_chart
import pytest
import yaml
from test_cluster import CHART, OAL_CA, WAIT, claims, explain, install, secrets_job

#: What decides where Flink finds its newest checkpoint. The job's id is its main class's, in the image.
FOUND_BY = ("kubernetes.cluster-id", "kubernetes.namespace", "high-availability.type", "high-availability.storageDir",
            "execution.checkpointing.dir")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory) -> Path:
    return earlier_chart.unpack(tmp_path_factory.mktemp("earlier"))


def as_installed(earlier: Path, values: str) -> list[str]:
    """The values of somebody who installed it: its example of then, unchanged."""
    return ["-f", str(earlier_chart.examples(earlier)[values])] if values else []


def mounts(cluster, namespace) -> dict[str, set[tuple[str, str]]]:
    """Claim → (part, path) of each container of a lasting pod that has it."""
    found: dict[str, set[tuple[str, str]]] = {}
    for pod in cluster.get("pods", "-n", namespace):
        if any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences", [])):
            continue
        its = {v["name"]: v["persistentVolumeClaim"]["claimName"] for v in pod["spec"]["volumes"]
               if "persistentVolumeClaim" in v}
        for container in pod["spec"]["containers"]:
            for mount in container["volumeMounts"]:
                if mount["name"] in its:
                    found.setdefault(its[mount["name"]], set()).add((container["name"], mount["mountPath"]))
    return found


def data(cluster, namespace, name: str) -> dict[str, str]:
    return json.loads(cluster.kubectl("-n", namespace, "get", "configmap", name, "-o", "json"))["data"]


def server_properties(cluster, namespace) -> dict[str, str]:
    text = data(cluster, namespace, "oal-kafka")["server.properties"]
    return dict(line.split("=", 1) for line in text.splitlines() if line and line[0] != "#")


def kafkas_id(cluster, namespace) -> str:
    line = next(line for line in data(cluster, namespace, "oal-kafka")["start.sh"].splitlines()
                if "kafka-storage.sh" in line)
    return line.split(" -t ")[1].split()[0]


@pytest.mark.parametrize("values", ["", "small", "fleet"], ids=lambda v: v or "default")
def test_an_upgrade_keeps_every_volume_and_where_state_is_found(cluster, namespace, earlier, values):
    mine = as_installed(earlier, values)
    install(cluster, namespace, *mine, chart=earlier)
    before, where = claims(cluster, namespace), mounts(cluster, namespace)
    assert set(where) <= set(before) and len(where) >= 8
    flink = yaml.safe_load(data(cluster, namespace, "oal-flink")["config.yaml"])
    logs, kafka_id = server_properties(cluster, namespace)["log.dirs"], kafkas_id(cluster, namespace)
    # As a running Flink keeps it; Helm must leave it alone.
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "data": {"counter": "7"}, "metadata": {
        "name": "oal-flink-cluster-config-map", "namespace": namespace,
        "labels": {"app": "oal-flink", "configmap-type": "high-availability"}}})

    changed = ("--set", "flink.checkpoints.interval=7s", "--set", "flink.taskManager.slots=3")
    install(cluster, namespace, *mine, *changed, command="upgrade")
    after, now = claims(cluster, namespace), mounts(cluster, namespace)
    assert {name: after.get(name) for name in before} == before, "a claim is another one"
    for claim, places in where.items():
        assert places <= now[claim], f"{claim} was at {places} and is at {now[claim]}"
    config = yaml.safe_load(data(cluster, namespace, "oal-flink")["config.yaml"])
    assert {key: config.get(key) for key in FOUND_BY} == {key: flink.get(key) for key in FOUND_BY}
    assert all(flink.get(key) for key in FOUND_BY if key != "kubernetes.namespace")
    assert config["execution.checkpointing.interval"] == "7s"
    replicas = len([p for p in cluster.get("pods", "-n", namespace, "-l",
                                           "app.kubernetes.io/component=flink-taskmanager")])
    assert config["parallelism.default"] == 3 * replicas
    # Its state has 128 key groups, and a checkpoint is refused by any other number.
    assert "max.parallelism" not in data(cluster, namespace, "oal-flink")["job.properties"]
    assert data(cluster, namespace, "oal-flink-cluster-config-map") == {"counter": "7"}
    assert (server_properties(cluster, namespace)["log.dirs"], kafkas_id(cluster, namespace)) == (logs, kafka_id)

    done = cluster.helm("rollback", "oal", "1", "-n", namespace, *WAIT)
    assert done.returncode == 0, done.stderr + explain(cluster, namespace)
    assert {name: claims(cluster, namespace).get(name) for name in before} == before
    assert mounts(cluster, namespace) == where


def test_no_key_that_an_installation_may_have_set_is_unknown_now(cluster, namespace, earlier):
    """A person may have copied the whole values.yaml: each of its keys is taken, as it was."""
    gone = earlier_chart.keys(earlier / "values.yaml") - earlier_chart.keys(CHART / "values.yaml")
    assert not gone
    done = cluster.helm("template", "oal", str(CHART), "-n", namespace, "--kube-version", "1.37.0", "-f",
                        str(earlier / "values.yaml"))
    assert done.returncode == 0, done.stderr


def test_values_by_which_it_was_installed_are_taken(cluster, namespace, earlier):
    for name, file in earlier_chart.examples(earlier).items():
        done = cluster.helm("template", "oal", str(CHART), "-n", namespace, "--kube-version", "1.37.0", "-f", str(file))
        assert done.returncode == 0, (name, done.stderr)


def secrets(cluster, namespace) -> dict[str, dict[str, bytes]]:
    return {s["metadata"]["name"]: {key: base64.b64decode(value) for key, value in s.get("data", {}).items()}
            for s in cluster.get("secrets", "-n", namespace) if s["type"] == "Opaque"}


def test_secrets_of_before_stay_and_what_pods_mount_now_is_added(cluster, namespace, earlier, tmp_path):
    secrets_job(cluster, namespace, tmp_path, earlier, earlier.parents[1] / "security" / "oal-ca")()
    before = secrets(cluster, namespace)
    secrets_job(cluster, namespace, tmp_path, CHART, OAL_CA)()
    after = secrets(cluster, namespace)
    state = before["oal-state"]
    kept = [key for key in state if key.startswith("secrets.") or key in (
        "pki.ca.crt", "pki.ca.key", "pki.ap-ca.crt", "pki.ap-ca.key", "pki.flink-internal.password")]
    assert len(kept) > 20
    changed = [key for key in kept if after["oal-state"][key] != state[key]]
    changed += [key for key in before["oal-secrets"] if after["oal-secrets"][key] != before["oal-secrets"][key]
                and key != "bundle-keys.txt"]
    assert not changed
    # Trusted keys of bundles are the same; each line says now what its key may sign besides.
    old, new = (data["oal-secrets"]["bundle-keys.txt"].decode() for data in (before, after))
    assert {line.split()[1] for line in old.splitlines() if line[0] != "#"} == {
        line.split()[1] for line in new.splitlines() if line[0] != "#"}
    # Services' certificates come from a CA of their own now, of the same root.
    for name, keys in after.items():
        if "-tls-" in name:
            for key in ("ca.crt", "tls.crt"):
                (tmp_path / key).write_bytes(keys[key])
            done = subprocess.run(["openssl", "verify", "-CAfile", tmp_path / "ca.crt", "-untrusted",
                                   tmp_path / "tls.crt", tmp_path / "tls.crt"], capture_output=True, text=True)
            assert done.returncode == 0, (name, done.stderr)
    roots = {data["ca.crt"] for name, data in {**before, **after}.items() if "ca.crt" in data}
    assert len(roots) == 1, "access points that enrolled would not believe the new ones"

    cluster.kubectl("-n", namespace, "delete", "serviceaccount,role,rolebinding", "oal-secrets")
    rendered = cluster.helm("template", "oal", str(CHART), "-n", namespace, "--kube-version", "1.37.0")
    wanted: dict[str, set[str]] = {}
    for o in yaml.safe_load_all(rendered.stdout):
        spec = ((o or {}).get("spec") or {}).get("template", {}).get("spec", {})
        for volume in spec.get("volumes", []):
            for source in volume.get("projected", {}).get("sources", []):
                if "secret" in source:
                    wanted.setdefault(source["secret"]["name"], set()).update(
                        item["key"] for item in source["secret"]["items"])
    assert len(wanted) > 10
    missing = {name: keys - set(after.get(name, {})) for name, keys in wanted.items()}
    assert not {name: keys for name, keys in missing.items() if keys}
