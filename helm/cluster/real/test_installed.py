"""The chart with running pods, on one node: installed, asked, killed, upgraded, rolled back, removed, installed anew.

The tests share one release and run in this order.
"""
import json
import subprocess
import time

import images
import pytest
from figures import measured
from installation import CHART, ROOT

#: After a forced kill rows of after it are to be readable within this; a wait's end, not a figure to reach.
AGAIN_S = 900
#: Pods of a release with examples/small.yaml, by component: each is killed once.
COMPONENTS = ("kafka", "clickhouse", "flink-jobmanager", "flink-taskmanager", "postgres", "mlflow", "registry",
              "trainer", "push", "telegraf", "transactions")

def test_every_pod_runs_restricted_and_none_was_restarted(oal):
    assert oal.all_ready() and oal.pods()
    for pod in oal.pods():
        assert pod["metadata"]["namespace"] == "oal" and pod["status"]["phase"] in ("Running", "Succeeded")
    with pytest.raises(RuntimeError, match="violates PodSecurity"):
        oal.k("run", "root", "--image=x:1")
    assert {p["metadata"]["labels"]["app.kubernetes.io/component"] for p in oal.services()} == set(COMPONENTS)
    assert oal.restarts() == {}

def test_ready_is_every_task_running(oal):
    job = oal.job()
    assert job["state"] == "RUNNING" and job["tasks"]["running"] == job["tasks"]["total"] > 0, job

#: In a pod that no NetworkPolicy lets in anywhere: says of each HOST:PORT whether a connection comes about.
REACHED = r"""
for a in "$@"; do timeout 5 bash -c "exec 3<>/dev/tcp/${a%:*}/${a#*:}" 2>/dev/null && echo "$a"; done; true"""

def reached(oal, pod: str, *addresses: str) -> set[str]:
    return set(oal.k("exec", pod, "--", "bash", "-c", REACHED, "-", *addresses).split())

def test_a_stranger_in_the_namespace_reaches_no_part_and_a_part_only_what_it_needs(oal):
    """NetworkPolicies, enforced: asked by address from pods, so that names and Services play no part."""
    inner = {"clickhouse": (8123,), "kafka": (9093, 9094), "postgres": (5432,), "mlflow": (5000,), "registry": (5001,),
             "trainer": (5002,), "push": (8080,), "flink-jobmanager": (8081,)}
    address = {c: oal.pods(c)[0]["status"]["podIP"] for c in inner}
    listening = {f"{address[c]}:{port}" for c, ports in inner.items() for port in ports}
    found = subprocess.run([*oal.cluster.inside, "bash", "-c", REACHED, "-", *sorted(listening)], capture_output=True,
                           text=True, check=True).stdout
    assert set(found.split()) == listening, "a port of this list is not one; the node may reach them all"
    oal.cluster.apply(stranger(oal.namespace))
    oal.k("wait", "--for=condition=Ready", "pod/stranger", "--timeout=120s")
    try:
        assert reached(oal, "stranger", *sorted(listening)) == set()
    finally:
        oal.k("delete", "pod", "stranger", "--force", "--grace-period=0")
    telegraf, mlflow = (oal.pods(c)[0]["metadata"]["name"] for c in ("telegraf", "mlflow"))
    assert f"{address['clickhouse']}:8123" in reached(oal, telegraf, f"{address['clickhouse']}:8123")
    assert reached(oal, mlflow, *sorted(listening)) <= {f"{address[c]}:{p}" for c, p in (
        ("postgres", 5432), ("registry", 5001), ("mlflow", 5000))}

def stranger(namespace: str) -> dict:
    """A pod of somebody else's in the release's namespace."""
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger", "namespace": namespace},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 10002, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "stranger", "image": images.tags()["OAL_SETUP_IMAGE"], "imagePullPolicy": "Never",
                "command": ["sleep", "600"],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
            }]
        }
    }

def test_an_access_point_outside_streams(oal, access_points):
    oal.until("rows of the last seconds, of both", lambda: oal.fresh(2))
    settled(oal)

def test_the_query_of_the_notes_answers(oal, access_points):
    """As helm prints it, in a shell."""
    notes = oal.cluster.helm("get", "notes", "oal", "-n", oal.namespace).stdout
    command = next(line.strip() for line in notes.splitlines() if "clickhouse-client" in line)

    def rows():
        done = subprocess.run([*oal.cluster.inside, "bash", "-c", command], capture_output=True, text=True, timeout=60,
                              env={"PATH": f"{oal.cluster.bin}:/usr/bin:/bin", "HOME": str(oal.folder),
                                   "KUBECONFIG": str(oal.cluster.kubeconfig)})
        assert done.returncode == 0, done.stderr
        return "ap-0001" in done.stdout and "ap-0002" in done.stdout

    oal.until("both access points in the answer", rows, 90)

def test_a_promotion_through_a_port_forward_reaches_every_access_point(oal, access_points):
    """The first model, fitted where the registry runs; then what MLflow's page sends when somebody gives it the alias
    champion, and the approval of `helm get notes`."""
    registry = oal.pods("registry")[0]["metadata"]["name"]
    items = (ROOT / "lab" / "corpus" / "fleet.items.parquet").read_bytes()
    done = subprocess.run([*oal.cluster.inside, *oal.cluster.kubectl_command, "-n", "oal", "exec", "-i", registry, "--",
                           "sh", "-c", "cat >/tmp/items.parquet"], input=items, capture_output=True)
    assert done.returncode == 0, done.stderr
    oal.k("exec", registry, "--", "oal-train", "fit", "/opt/oal/training/experiments/fleet_small.yaml", "--source",
          "/tmp/items.parquet", "--config", "/etc/oal/registry/registry.yaml", "--register", "congestion")
    password = oal.secret("secrets", "mlflow-admin.password").decode().strip()
    with oal.port_forward("mlflow", 5000) as port:
        begin = time.monotonic()
        oal.get(f"https://localhost:{port}/ajax-api/2.0/mlflow/registered-models/alias", "-u", f"admin:{password}",
                "-H", "Content-Type: application/json", "--data-binary",
                json.dumps({"name": "congestion", "alias": "champion", "version": "1"}))

    def rollout() -> list[str]:
        said = oal.k("exec", "oal-push-0", "--", "oal-deploy", "ctl", "rollouts", "--config",
                     "/etc/oal/push/deploy.yaml")
        return next((line.split() for line in said.splitlines() if " champion " in f" {line} "), [])

    def applied(least: int) -> bool:
        return oal.number("SELECT uniqExact(ap_id) FROM oal.bundle_status WHERE state IN (1, 3) AND source = 1 AND"
                          " version = 1") >= least

    number = oal.until("the release is known to the push service", rollout)[0]
    token = oal.secret("secrets", "push-approver.token").decode()
    oal.k("exec", "-i", "oal-push-0", "--", "oal-deploy", "ctl", "approve", number, "--reason", "looked at",
          "--token-file", "/dev/stdin", "--config", "/etc/oal/push/deploy.yaml", text=token)
    oal.until("both access points applied it", lambda: applied(2))
    measured("alias set on MLflow's page, approved, applied by two access points", time.monotonic() - begin)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_forced_kill_loses_nothing_and_doubles_nothing(oal, access_points, component):
    (pod, *_) = oal.pods(component)
    begin = time.time()
    oal.k("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    oal.until("rows of after the kill",
              lambda: oal.number("SELECT uniqExactIf(ap_id, count > 2) FROM (SELECT ap_id, count() AS count FROM"
                                 f" oal.batch WHERE ts > fromUnixTimestamp64Milli({int(begin * 1000) + 1000})"
                                 " GROUP BY ap_id)") == 2, AGAIN_S)
    measured(f"rows again after a forced kill: {component}", time.time() - begin)
    oal.until("every pod is ready", oal.all_ready, AGAIN_S)
    assert oal.until("every task runs", oal.job_runs)
    settled(oal)

def settled(oal) -> dict:
    """No hole and no double: what is on its way at this moment is not counted as a hole for ever."""
    def whole():
        found = oal.completeness()
        return found if found["missing"] == 0 else None

    found = oal.until("no batch is missing", whole, AGAIN_S)
    assert all(found[name] == 0 for name in ("doubled", "dropped", "dead_letters", "late")), found
    return found

def upgrade(oal, *values: str, **more) -> dict:
    """`helm upgrade`, and the job after it: the same, from a checkpoint, with rows that go on."""
    before = oal.job()["id"]
    begin = time.monotonic()
    oal.helm("upgrade", *values, **more)
    measured(f"helm upgrade {' '.join(v for v in values if v != '--set')}".strip(), time.monotonic() - begin)
    job = oal.job_runs()
    assert job, "helm said upgraded, and the job does not run"
    assert job["id"] == before and job["restored"], f"the job began without its state: {job}"
    oal.until("rows after the upgrade", lambda: oal.fresh(2))
    settled(oal)
    return job

def test_an_upgraded_value_is_in_force_in_the_running_job(oal, access_points):
    assert oal.job()["interval_ms"] == 2000 and oal.job()["parallelism"] == 2
    job = upgrade(oal, "--set", "flink.checkpoints.interval=3s,flink.taskManager.slots=1")
    assert job["interval_ms"] == 3000 and job["parallelism"] == 1, job

def test_an_upgraded_image_runs(oal, access_points):
    upgrade(oal, "--set", f"images.tag={images.NEXT_TAG}")
    own = [c["image"] for p in oal.services() for c in p["spec"]["containers"] if "/oal-" in f"/{c['image']}"
           and "standin" not in c["image"]]
    assert own and all(image.endswith(f":{images.NEXT_TAG}") for image in own), own
    assert oal.job()["interval_ms"] == 2000  # Helm took the values of this command, not those of the one before

def test_a_rollback_brings_the_job_back_too(oal, access_points):
    history = json.loads(oal.cluster.helm("history", "oal", "-n", oal.namespace, "-o", "json").stdout)
    slower = next(h["revision"] for h in history[1:2])
    done = oal.cluster.helm("rollback", "oal", str(slower), "-n", oal.namespace, "--wait", "--wait-for-jobs",
                            "--timeout", "15m")
    assert done.returncode == 0, done.stderr + oal.explain()
    job = oal.job_runs()
    assert job and job["interval_ms"] == 3000 and job["parallelism"] == 1 and job["restored"], job
    oal.until("rows after the rollback", lambda: oal.fresh(2))
    settled(oal)

def test_a_rollback_from_an_image_that_does_not_exist(oal, access_points):
    """No pod of the revision that cannot start stays in the way."""
    parts = ("kafka", "clickhouse", "postgres")
    none = ",".join(f"images.{part}=oal-standin/{part}:none" for part in parts)
    revision = json.loads(oal.cluster.helm("history", "oal", "-n", oal.namespace, "-o", "json").stdout)[-1]["revision"]
    files = [part for file in oal.values for part in ("-f", str(file))]
    done = oal.cluster.helm("upgrade", "oal", str(CHART), "-n", oal.namespace, *files, "--set", none, "--wait",
                            "--timeout", "60s")
    assert done.returncode != 0
    for part in parts:
        oal.until(f"{part} has no image", lambda part=part: oal.waits_for(part) & {"ErrImagePull", "ImagePullBackOff"})
    done = oal.cluster.helm("rollback", "oal", str(revision), "-n", oal.namespace, "--wait", "--wait-for-jobs",
                            "--timeout", "15m")
    assert done.returncode == 0, done.stderr + oal.explain()
    assert oal.until("every task runs", oal.job_runs)
    oal.until("rows after the rollback", lambda: oal.fresh(2))
    settled(oal)

def test_uninstalled_and_installed_anew_with_the_old_volumes(oal, access_points):
    before = oal.completeness()["batches"]
    gone(oal)
    begin = time.monotonic()
    oal.helm("install")
    measured("helm install again, with the volumes of before", time.monotonic() - begin)
    assert oal.job_runs()["restored"], "the checkpoint on the volume was left unused"
    oal.until("rows again", lambda: oal.fresh(2))
    assert settled(oal)["batches"] > before

def test_uninstalled_cleaned_up_and_installed_anew_from_nothing(oal, access_points):
    gone(oal)
    oal.wipe()
    assert oal.cluster.get("pvc,secret,configmap", "-n", oal.namespace, "-l", "app.kubernetes.io/instance=oal") == []
    oal.until("the volumes are free", lambda: oal.cluster.fresh_volumes() or not oal.cluster.get("pvc", "-A"))
    begin = time.monotonic()
    oal.helm("install")
    measured("helm install again, from nothing", time.monotonic() - begin)
    job = oal.job_runs()
    assert job and not job["restored"], job
    for ap in access_points:  # another authority: they enrol anew
        ap.stop()
        ap.enrol()
        ap.start()
    oal.until("rows again", lambda: oal.fresh(2))
    settled(oal)

def gone(oal) -> None:
    done = oal.cluster.helm("uninstall", "oal", "-n", oal.namespace, "--wait", "--timeout", "5m")
    assert done.returncode == 0, done.stderr
    oal.until("every pod is gone", lambda: not oal.pods())
