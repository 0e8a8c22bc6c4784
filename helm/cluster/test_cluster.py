"""The chart on a real API server. Nodes are fake: what is shown is that the API server takes every object, that pods
are let in under the restricted standard, that Helm's waits end, and that nothing is left. That programs work in their
images show tests elsewhere."""
import base64
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from conftest import INSTALLED, ROOT

CHART = ROOT / "helm" / "oal"
OAL_CA = ROOT / "platform" / "security" / "oal-ca"
EXAMPLES = {
    "default": [], "small": ["-f", str(CHART / "examples" / "small.yaml")],
    "fleet": ["-f", str(CHART / "examples" / "fleet.yaml")]
}
WAIT = ("--wait", "--wait-for-jobs", "--timeout", "5m")
# Of a namespace itself, or gone by themselves.
NOT_OURS = ("events", "events.events.k8s.io", "endpoints", "leases.coordination.k8s.io")


def install(cluster, namespace, *values, command="install", chart=CHART):
    done = cluster.helm(command, "oal", str(chart), "-n", namespace, *WAIT, *values)
    assert done.returncode == 0, done.stderr + explain(cluster, namespace)
    return done.stdout


def explain(cluster, namespace) -> str:
    return "\n" + cluster.kubectl("-n", namespace, "get", "pods,pvc,jobs", check=False) + cluster.kubectl(
        "-n", namespace, "get", "events", "--field-selector=type=Warning", check=False)[-3000:]


def left(cluster, namespace) -> set[str]:
    """kind/name of everything in the namespace but what every namespace has."""
    kinds = [
        k for k in cluster.kubectl("api-resources", "--namespaced", "--verbs=list,delete", "-o", "name").split()
        if k not in NOT_OURS
    ]
    names = set(cluster.kubectl("-n", namespace, "get", ",".join(kinds), "-o", "name").split())
    return names - {"configmap/kube-root-ca.crt", "serviceaccount/default"}


def claims(cluster, namespace) -> dict[str, str]:
    return {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in cluster.get("pvc", "-n", namespace)}


def pods(cluster, namespace, component) -> list[dict]:
    return cluster.get("pods", "-n", namespace, "-l", f"app.kubernetes.io/component={component}")


def ready(pod) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and any(c["type"] == "Ready" and c["status"] == "True"
                                                                for c in pod["status"].get("conditions", []))


def test_the_pod_that_replays_an_access_point_is_let_in_under_the_restricted_standard(cluster, namespace):
    said = cluster.kubectl("apply", "-n", namespace, "--dry-run=server", "-f", str(ROOT / "helm" / "access-point.yaml"))
    assert "pod/ap-0007 created" in said


@pytest.mark.parametrize("values", EXAMPLES)
def test_install_upgrade_rollback_and_uninstall(cluster, namespace, values):
    begin = time.monotonic()
    notes = install(cluster, namespace, *EXAMPLES[values])
    INSTALLED[values] = time.monotonic() - begin
    assert "port-forward svc/oal-grafana" in notes and "ctl ticket AP_ID" in notes
    assert all(pod["status"]["phase"] in ("Running", "Succeeded") for pod in cluster.get("pods", "-n", namespace))
    before = claims(cluster, namespace)
    images = {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods(cluster, namespace, "kafka")}

    install(cluster, namespace, *EXAMPLES[values], "--set", "push.enrol.certificateDays=7", command="upgrade")
    config = cluster.kubectl("-n", namespace, "get", "configmap", "oal-push", "-o", "jsonpath={.data.deploy\\.yaml}")
    assert yaml.safe_load(config)["enrol"]["certificate_days"] == 7
    # What did not change was not restarted.
    assert {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods(cluster, namespace, "kafka")} == images

    done = cluster.helm("rollback", "oal", "1", "-n", namespace, *WAIT)
    assert done.returncode == 0, done.stderr
    config = cluster.kubectl("-n", namespace, "get", "configmap", "oal-push", "-o", "jsonpath={.data.deploy\\.yaml}")
    assert yaml.safe_load(config)["enrol"]["certificate_days"] == 30

    done = cluster.helm("uninstall", "oal", "-n", namespace, "--wait")
    assert done.returncode == 0, done.stderr
    kept = {f"persistentvolumeclaim/{name}" for name in before}
    cluster.wait("only volumes are left", lambda: left(cluster, namespace) == kept, 60)
    assert claims(cluster, namespace) == before


def test_an_upgrade_from_an_earlier_chart_keeps_every_volume(cluster, namespace, tmp_path):
    made = cluster.helm("package", str(CHART), "--version", "0.1.0", "--app-version", "0.1.0", "-d", str(tmp_path))
    assert made.returncode == 0, made.stderr
    earlier = ["-f", str(Path(__file__).parent / "earlier.yaml")]
    install(cluster, namespace, *earlier, chart=tmp_path / "oal-0.1.0.tgz")
    before = claims(cluster, namespace)
    jobs = {job["metadata"]["name"] for job in cluster.get("jobs", "-n", namespace)}
    # Without values Helm would keep the earlier ones.
    install(cluster, namespace, "--reset-values", command="upgrade")
    after = claims(cluster, namespace)
    assert {name: after.get(name) for name in before} == before
    # Another image, so topics and migrations were applied anew, and the old Jobs are gone.
    now = {job["metadata"]["name"] for job in cluster.get("jobs", "-n", namespace)}
    assert len(now) == 2 and not now & jobs
    assert cluster.helm("history", "oal", "-n", namespace, "-o", "json").stdout.count("oal-0.") == 2


def test_a_rollout_goes_on_when_a_node_is_lost(cluster, namespace):
    install(cluster, namespace, "--set", "push.replicas=3,trainer.replicas=2")
    lost = pods(cluster, namespace, "push")[0]["spec"]["nodeName"]
    result = {}
    upgrade = threading.Thread(
        target=lambda: result.update(done=cluster.helm("upgrade", "oal", str(CHART), "-n", namespace, *WAIT, "--set",
                                                       "push.replicas=3,trainer.replicas=2,push.maxConnections=5000")))
    saved = json.loads(cluster.kubectl("get", "node", lost, "-o", "json"))
    upgrade.start()
    try:
        cluster.wait(
            "the rollout has begun", lambda: "5000" in cluster.kubectl("-n", namespace, "get", "configmap", "oal-push",
                                                                       "-o", "jsonpath={.data.deploy\\.yaml}"), 60)
        cluster.kubectl("delete", "node", lost)
        upgrade.join()
        assert result["done"].returncode == 0, result["done"].stderr + explain(cluster, namespace)
        cluster.wait(
            "every replica is ready on a node that is there",
            lambda: len(now := pods(cluster, namespace, "push")) == 3 and all(
                ready(p) and p["spec"]["nodeName"] != lost for p in now), 180)
    finally:
        upgrade.join()
        cluster.apply({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": lost, "labels": saved["metadata"]["labels"]},
            "status": {"allocatable": saved["status"]["allocatable"], "capacity": saved["status"]["capacity"]}
        })
        cluster.kubectl("wait", "--for=condition=Ready", "node", lost, "--timeout=60s")


def test_a_drain_takes_one_replica_at_a_time(cluster, namespace):
    install(cluster, namespace, "--set", "push.replicas=2")
    nodes = [node["metadata"]["name"] for node in cluster.get("nodes")]

    def evict(name: str) -> str:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        done = subprocess.run([
            cluster.bin / "kubectl", f"--kubeconfig={cluster.kubeconfig}", "create", "--raw",
            f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", "-f", "-"
        ], input=json.dumps(body), capture_output=True, text=True)
        return done.stdout + done.stderr

    cluster.wait(
        "the budget has counted",
        lambda: json.loads(cluster.kubectl("-n", namespace, "get", "pdb", "oal-push", "-o", "json"))["status"].get(
            "disruptionsAllowed") == 1)
    for node in nodes:
        cluster.kubectl("cordon", node)
    try:
        assert "Success" in evict("oal-push-0")
        cluster.wait(
            "its replacement waits for a node",
            lambda: any(p["metadata"]["name"] == "oal-push-0" and p["status"]["phase"] == "Pending"
                        for p in pods(cluster, namespace, "push")))
        cluster.wait(
            "the budget is spent",
            lambda: json.loads(cluster.kubectl("-n", namespace, "get", "pdb", "oal-push", "-o", "json"))["status"][
                "disruptionsAllowed"] == 0)
        assert "disruption budget" in evict("oal-push-1")
    finally:
        for node in nodes:
            cluster.kubectl("uncordon", node)
    cluster.wait("both are back", lambda: len(now := pods(cluster, namespace, "push")) == 2 and all(map(ready, now)))


def test_several_clickhouse_servers_are_installed_and_no_upgrade_leaves_rows_unread(cluster, namespace):
    notes = install(cluster, namespace, "--set", "clickhouse.shards=2,clickhouse.replicas=2")
    assert "exec oal-clickhouse-0-0 " in notes
    nodes = {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods(cluster, namespace, "clickhouse")}
    assert nodes.keys() == {f"oal-clickhouse-{shard}-{replica}" for shard in range(2) for replica in range(2)}
    assert all(nodes[f"oal-clickhouse-{shard}-0"] != nodes[f"oal-clickhouse-{shard}-1"] for shard in range(2))
    assert len({p["spec"]["nodeName"] for p in pods(cluster, namespace, "clickhouse-keeper")}) == 3
    before = left(cluster, namespace)
    for values, said in {
            "clickhouse.shards=1": "rows one server would not read",
            "clickhouse.replicas=2": "rows of StatefulSet oal-clickhouse-1",
            "clickhouse.shards=2": "tables with copies are of another engine"
    }.items():
        done = cluster.helm("upgrade", "oal", str(CHART), "-n", namespace, "--set", values)
        assert done.returncode != 0 and said in done.stderr, (values, done.stderr)
    # But for the record of what was installed.
    assert {name for name in left(cluster, namespace)
            if "sh.helm.release" not in name} == {name for name in before if "sh.helm.release" not in name}


def test_backups_turned_on_later_with_shards_are_refused_until_the_statefulsets_are_deleted(cluster, namespace):
    """Claims of a StatefulSet cannot be changed in place, nor can the volumes of a pod that one adopts: nothing is
    changed, and then, by the command that is said, every volume is kept."""
    shards = ("--set", "clickhouse.shards=2")
    backups = ("--set", "clickhouse.backup.enabled=true,backup.enabled=true")
    install(cluster, namespace, *shards)
    before = claims(cluster, namespace)
    there = left(cluster, namespace)
    done = cluster.helm("upgrade", "oal", str(CHART), "-n", namespace, *shards, *backups, *WAIT)
    assert done.returncode != 0 and "the claims of StatefulSet oal-clickhouse-0 cannot be changed" in done.stderr
    assert {name for name in left(cluster, namespace) if "sh.helm.release" not in name} == {
        name for name in there if "sh.helm.release" not in name}
    (command,) = re.findall(r"`kubectl (-n \S+ delete statefulset) oal-clickhouse-0`", done.stderr)
    for shard in range(2):
        cluster.kubectl(*command.split(), f"oal-clickhouse-{shard}")
    install(cluster, namespace, *shards, *backups, command="upgrade")
    after = claims(cluster, namespace)
    assert {name: after.get(name) for name in before} == before
    for pod in pods(cluster, namespace, "clickhouse"):
        name = pod["metadata"]["name"]
        mounted = {v["persistentVolumeClaim"]["claimName"] for v in pod["spec"]["volumes"]
                   if "persistentVolumeClaim" in v}
        assert mounted == {f"data-{name}", f"backups-{name}"} <= after.keys()


def test_flinks_plan_is_forgotten_with_the_rights_of_its_account_or_nothing_starts(cluster, namespace, tmp_path):
    """The JobManager's own program before each start; what it leaves of the ConfigMap is where the checkpoints are."""
    rendered = cluster.helm("template", "oal", str(CHART), "-n", namespace, "--kube-version", "1.37.0", "--show-only",
                            "templates/flink.yaml")
    assert rendered.returncode == 0, rendered.stderr
    objects = [o for o in yaml.safe_load_all(rendered.stdout) if o]
    cluster.apply(*(o for o in objects if o["kind"] in ("ServiceAccount", "Role", "RoleBinding")))
    volume = tmp_path / "volume"
    plan = next(o for o in objects if o["kind"] == "ConfigMap")["data"]["plan.sh"]
    (tmp_path / "plan.sh").write_text(plan.replace("/var/lib/oal/flink", str(volume)))
    (tmp_path / "token").write_text(cluster.kubectl("-n", namespace, "create", "token", "oal-flink"))
    (tmp_path / "ca.crt").write_bytes((cluster.folder / "ca.crt").read_bytes())
    job = hashlib.md5(b"oal.stream.Main").hexdigest()

    def run(port=cluster.api):
        return subprocess.run(
            ["bash", str(tmp_path / "plan.sh")], capture_output=True, text=True, env=os.environ | {
                "OAL_ACCOUNT": str(tmp_path), "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "KUBERNETES_SERVICE_PORT": str(port)})

    def config_map(name: str, data: dict) -> dict:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
                "data": data}

    first = run()
    assert first.returncode == 0, first.stderr  # a first start: there is nothing to forget
    cluster.apply(config_map("oal-flink-cluster-config-map",
                             {f"executionPlan-{job}": "old", f"jobGraph-{job}": "older", "leader": "kept"}))
    done = run()
    assert done.returncode == 0, done.stderr
    after = cluster.kubectl("-n", namespace, "get", "configmap", "oal-flink-cluster-config-map", "-o", "json")
    assert json.loads(after)["data"] == {"leader": "kept"}

    cluster.apply(config_map(f"oal-flink-{job}-config-map", {"counter": "1"}))  # before the first checkpoint
    assert run().returncode == 0
    # A checkpoint that is spoken of and not there: the volume is another one. The end of a handle as Flink 2.3 wrote it
    # on a real node: a string with its length, and the end of its block.
    file = volume / "ha" / "default" / "completedCheckpoint73fd44cf24e0"
    path = f"file:{file}".encode()
    spoken = b"java.net.URI\xac\x01x.C\x9eI\xab\x03\0\x01L\0\x06stringt\0\x12Ljava/lang/String;xpt" + struct.pack(
        ">H", len(path)) + path + b"x"
    cluster.apply(config_map(f"oal-flink-{job}-config-map",
                             {"checkpointID-0000000000000000007": base64.b64encode(spoken).decode()}))
    file.parent.mkdir(parents=True)
    file.touch()
    done = run()
    assert done.returncode == 0, done.stderr
    file.unlink()
    done = run()
    assert done.returncode != 0 and (
        f"kubectl -n {namespace} delete configmap -l app=oal-flink,type=flink-native-kubernetes" in done.stderr)
    assert run(port=1).returncode != 0  # no API server: closed
    cluster.kubectl("-n", namespace, "delete", "rolebinding", "oal-flink")
    done = run()
    assert done.returncode != 0 and "cannot be read (status 403)" in done.stderr


def test_wrong_values_change_nothing_and_say_which_key(cluster, namespace):
    done = cluster.helm("install", "oal", str(CHART), "-n", namespace, "--set", "kafka.replicas=2")
    assert done.returncode != 0 and "/kafka/replicas" in done.stderr
    assert left(cluster, namespace) == set()


def test_a_missing_secret_is_named_before_anything_is_made(cluster, namespace):
    done = cluster.helm("install", "oal", str(CHART), "-n", namespace, "--set",
                        "pki.mode=existing,pki.existing.prefix=ours")
    assert done.returncode != 0
    assert (
        "Secret ours-tls-broker (keys tls.crt, tls.key, tls-combined.pem, ca.crt)" in done.stderr
        and "Secret ours-secrets (keys" in done.stderr
    )
    assert left(cluster, namespace) == set()


def test_the_api_server_refuses_a_pod_that_is_not_restricted(cluster, namespace):
    """Or the label on these namespaces would mean nothing."""
    with pytest.raises(RuntimeError, match="violates PodSecurity"):
        cluster.kubectl("-n", namespace, "run", "root", "--image=x:1")


def secrets_job(cluster, namespace, folder: Path, chart: Path, program: Path) -> Callable[[], str]:
    """Runs the Job that makes Secrets, as `chart` has it, with its own account's token, which is kept in `folder`;
    `program` is oal-ca. What a run said, each time that it is called.
    """
    rendered = cluster.helm("template", "oal", str(chart), "-n", namespace, "--kube-version", "1.37.0", "--show-only",
                            "templates/secrets.yaml")
    assert rendered.returncode == 0, rendered.stderr
    objects = [o for o in yaml.safe_load_all(rendered.stdout) if o]
    cluster.apply(*(o for o in objects if o["kind"] in ("ServiceAccount", "Role", "RoleBinding")))
    job = next(o for o in objects if o["kind"] == "Job")["spec"]["template"]["spec"]["containers"][0]
    account = folder / "account"
    account.mkdir(exist_ok=True)
    (account / "token").write_text(cluster.kubectl("-n", namespace, "create", "token", "oal-secrets"))
    (account / "ca.crt").write_bytes((cluster.folder / "ca.crt").read_bytes())
    (account / "namespace").write_text(namespace)
    environment = os.environ | {
        "OAL_ACCOUNT": str(account), "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(
            cluster.api), "OAL_CA": str(program)
    } | {e["name"]: e["value"] for e in job["env"]}

    def run() -> str:
        done = subprocess.run(
            [sys.executable, str(chart / "files" / "publish_secrets.py"), *job["args"]], env=environment,
            capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_secrets_are_made_with_the_rights_of_their_job_and_then_suffice_for_an_install(cluster, namespace, tmp_path):
    """The Job's own program with its own account's token; then pki.mode existing finds nothing missing."""
    run = secrets_job(cluster, namespace, tmp_path, CHART, OAL_CA)
    first = run()
    assert "oal-state" in first and "oal-tls-broker" in first
    data = {s["metadata"]["name"]: s["data"] for s in cluster.get("secrets", "-n", namespace)}
    # Of the root only the certificate: its key was written nowhere, and whose it is cannot be made again.
    kept = {key: base64.b64decode(value) for key, value in data["oal-state"].items()}
    assert {"pki.ca.crt", "pki.svc-ca.key"} <= kept.keys() and not {"pki.ca.key", "pki.ca-next.key"} & kept.keys()
    token = base64.b64decode(data["oal-secrets"]["push-approver.token"])
    assert base64.b64decode(data["oal-secrets"]["admin-users"]).decode().split() == [
        "approver", "approver", hashlib.sha256(token).hexdigest()]
    assert "every Secret is as it was" in run()
    assert {s["metadata"]["name"]: s["data"] for s in cluster.get("secrets", "-n", namespace)} == data

    # A lost part is made again of the same keys.
    cluster.kubectl("-n", namespace, "delete", "secret", "oal-tls-deploy")
    assert "oal-tls-deploy" in run()
    assert json.loads(cluster.kubectl("-n", namespace, "get", "secret", "oal-tls-deploy", "-o",
                                      "json"))["data"] == data["oal-tls-deploy"]

    # Of an earlier version: its root's key stays where it was, and that is said.
    for value, said in (("b3Rocg==", True), (None, False)):
        patch = {"op": "add", "path": "/data/pki.ca.key", "value": value} if value else {
            "op": "remove", "path": "/data/pki.ca.key"}
        cluster.kubectl("-n", namespace, "patch", "secret", "oal-state", "--type=json", f"-p=[{json.dumps(patch)}]")
        notes = cluster.helm("install", "oal", str(CHART), "-n", namespace, "--dry-run=server").stdout
        assert ("the root CA's key is in Secret oal-state" in notes) == said, notes[-2000:]
    assert "every Secret is as it was" in run()

    from cryptography import x509
    broker = x509.load_pem_x509_certificate(base64.b64decode(data["oal-tls-broker"]["tls.crt"]))
    assert broker.subject.rfc4514_string() == "CN=broker,OU=service,O=oal"
    names = broker.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(
        x509.DNSName)
    assert "oal-kafka-0.oal-kafka-headless" in names

    # What the account may not: read another Secret, delete its own.
    can = {
        verb: cluster.kubectl("auth", "can-i", verb, f"secrets/{name}", "-n", namespace,
                              f"--as=system:serviceaccount:{namespace}:oal-secrets", check=False).strip()
        for verb, name in (("get", "other"), ("delete", "oal-state"), ("list", ""))
    }
    assert set(can.values()) == {"no"}, can

    cluster.kubectl("-n", namespace, "delete", "serviceaccount,role,rolebinding", "oal-secrets")
    install(cluster, namespace, "--set", "pki.mode=existing")
    cluster.helm("uninstall", "oal", "-n", namespace, "--wait")

    cluster.kubectl("-n", namespace, "patch", "secret", "oal-secrets", "--type=json",
                    '-p=[{"op": "remove", "path": "/data/mac-masters"}]')
    done = cluster.helm("install", "oal", str(CHART), "-n", namespace, "--set", "pki.mode=existing")
    assert done.returncode != 0 and "key mac-masters of Secret oal-secrets" in done.stderr
    # What the servers of a cluster show each other is asked for where there is one.
    cluster.kubectl("-n", namespace, "patch", "secret", "oal-secrets", "--type=json",
                    '-p=[{"op": "remove", "path": "/data/clickhouse-cluster.secret"}]')
    assert "clickhouse-cluster.secret" not in cluster.helm("install", "oal", str(CHART), "-n", namespace, "--set",
                                                           "pki.mode=existing").stderr
    done = cluster.helm("install", "oal", str(CHART), "-n", namespace, "--set", "pki.mode=existing,clickhouse.shards=2")
    assert done.returncode != 0 and "key clickhouse-cluster.secret of Secret oal-secrets" in done.stderr
