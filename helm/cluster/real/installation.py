"""A release of the chart on a real cluster, as its operator and its analyst see it."""
import base64
import json
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import images
from real_cluster import RealCluster

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "helm" / "oal"
SMALL = CHART / "examples" / "small.yaml"
WAIT = ("--wait", "--wait-for-jobs")


class Installation:
    def __init__(self, cluster: RealCluster, namespace: str = "oal", values: tuple[Path, ...] = ()):
        self.cluster, self.namespace = cluster, namespace
        #: values files, in the order in which Helm gets them
        self.values = values
        self.folder = cluster.folder / f"ns-{namespace}"
        self.folder.mkdir(exist_ok=True)
        self._passwords: dict[str, str] = {}

    def create(self) -> None:
        """The namespace, as docs/install-cluster.md has it."""
        self.cluster.kubectl("create", "namespace", self.namespace)
        self.cluster.kubectl("label", "namespace", self.namespace, "pod-security.kubernetes.io/enforce=restricted")

    # Helm

    def installed(self) -> bool:
        return self.cluster.helm("status", "oal", "-n", self.namespace).returncode == 0

    def helm(self, command: str, *more: str, chart: Path = CHART, timeout: str = "15m") -> str:
        """Install or upgrade with the release's values and `more`; the output."""
        files = [part for file in self.values for part in ("-f", str(file))]
        done = self.cluster.helm(command, "oal", str(chart), "-n", self.namespace, *files, *more, *WAIT, "--timeout",
                                 timeout)
        assert done.returncode == 0, f"helm {command}: {done.stdout[-500:]}{done.stderr[-2000:]}\n{self.explain()}"
        return done.stdout

    def explain(self) -> str:
        """What runs and what is said, for a failure's message."""
        said = self.k("get", "pods,pvc,jobs", "-o", "wide", check=False)
        said += self.k("get", "events", "--field-selector=type=Warning", "--sort-by=.lastTimestamp",
                       check=False)[-4000:]
        for pod in self.pods():
            if not ready(pod) and pod["status"]["phase"] != "Succeeded":
                said += f"\n--- {pod['metadata']['name']}\n" + self.k("logs", pod["metadata"]["name"], "--tail=25",
                                                                       "--all-containers", check=False)[-3000:]
        return said

    def wipe(self) -> None:
        """The documented clean-up after an uninstall, with the volumes."""
        for line in cleanup():
            done = subprocess.run([*self.cluster.inside, "bash", "-ec", line], capture_output=True, text=True,
                                  env={"PATH": f"{self.cluster.bin}:/usr/bin:/bin",
                                       "KUBECONFIG": str(self.cluster.kubeconfig), "HOME": str(self.cluster.folder)})
            assert done.returncode == 0, f"{line}: {done.stderr}"
        self._passwords.clear()

    # Kubernetes

    def k(self, *arguments: str, check: bool = True, text: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments, check=check, text=text)

    def pods(self, component: str = "") -> list[dict]:
        label = ("-l", f"app.kubernetes.io/component={component}") if component else ()
        return self.cluster.get("pods", "-n", self.namespace, *label)

    def services(self) -> list[dict]:
        """Pods that last: those of Jobs do not."""
        return [p for p in self.pods() if not any(o["kind"] == "Job" for o in p["metadata"].get("ownerReferences", []))]

    def restarts(self) -> dict[str, int]:
        return {
            p["metadata"]["name"]: n for p in self.services()
            if (n := sum(c["restartCount"] for c in p["status"].get("containerStatuses", [])))
        }

    def waits_for(self, component: str) -> set[str]:
        """Why containers of that part do not start."""
        return {
            c["state"]["waiting"]["reason"] for p in self.pods(component)
            for c in p["status"].get("containerStatuses", []) if "waiting" in c["state"]
        }

    def all_ready(self) -> bool:
        return all(map(ready, self.services()))

    def secret(self, name: str, key: str) -> bytes:
        data = json.loads(self.k("get", "secret", f"oal-{name}", "-o", "json"))["data"]
        return base64.b64decode(data[key])

    def until(self, what: str, condition, seconds: float = 300):
        """The first true answer; an error of `condition` counts as none yet."""
        deadline, seen = time.monotonic() + seconds, None
        while True:
            try:
                if answer := condition():
                    return answer
                seen = answer
            except (AssertionError, RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
                seen = error
            assert time.monotonic() < deadline, (
                f"not within {seconds:.0f} s: {what}; last: {str(seen)[-1500:]}\n{self.explain()}")
            time.sleep(0.5)

    @contextmanager
    def port_forward(self, service: str, port: int):
        """`kubectl port-forward`: the local port, on the loopback of the node's namespace."""
        process = subprocess.Popen(
            [*self.cluster.inside, *self.cluster.kubectl_command, "-n", self.namespace, "port-forward",
             f"service/oal-{service}", f":{port}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            said = process.stdout.readline()
            assert (found := re.search(r"127\.0\.0\.1:(\d+) ->", said)), said
            yield int(found[1])
        finally:
            process.terminate()
            process.wait(20)
            process.stdout.close()

    # What it serves, asked from a node

    def curl(self, service: str, port: int, path: str, *options: str, timeout: float = 30) -> str:
        address = self.k("get", "service", f"oal-{service}", "-o", "jsonpath={.spec.clusterIP}")
        name = f"oal-{service}"
        return self.get(f"https://{name}:{port}{path}", "--resolve", f"{name}:{port}:{address}", *options,
                        timeout=timeout)

    def get(self, url: str, *options: str, timeout: float = 30) -> str:
        """Of a server that the installation's authority vouches for."""
        authority = self.folder / "ca.crt"
        authority.write_bytes(self.secret("tls-admin", "ca.crt"))
        done = subprocess.run(
            [*self.cluster.inside, "curl", "-sS", "--fail-with-body", "-m", str(int(timeout)), "--cacert",
             str(authority), *options, url], capture_output=True, text=True, timeout=timeout + 10)
        if done.returncode != 0:
            raise RuntimeError(f"{url}: {(done.stdout + done.stderr)[-800:]}")
        return done.stdout

    def sql(self, query: str, user: str = "analyst") -> str:
        if user not in self._passwords:
            self._passwords[user] = self.secret("secrets", f"clickhouse-{user}.password").decode().strip()
        return self.curl("clickhouse", 8123, "/", "-u", f"{user}:{self._passwords[user]}", "--data-binary",
                         query).strip()

    def number(self, query: str) -> float:
        return float(self.sql(query))

    def flink(self, path: str) -> dict:
        for part in ("crt", "key"):
            (self.folder / f"operator.{part}").write_bytes(self.secret("flink", f"operator.{part}"))
        return json.loads(self.curl("flink", 8081, path, "--cert", str(self.folder / "operator.crt"), "--key",
                                    str(self.folder / "operator.key")))

    def job(self) -> dict:
        """Of Flink: id, state, tasks; parallelism, checkpoint interval in ms, newest checkpoint restored."""
        (one,) = self.flink("/jobs/overview")["jobs"]
        vertices = self.flink(f"/jobs/{one['jid']}")["vertices"]
        restored = self.flink(f"/jobs/{one['jid']}/checkpoints")["latest"].get("restored")
        return {
            "id": one["jid"], "state": one["state"], "tasks": one["tasks"],
            "parallelism": max(v["parallelism"] for v in vertices),
            "interval_ms": self.flink(f"/jobs/{one['jid']}/checkpoints/config")["interval"], "restored": restored
        }

    def job_runs(self) -> dict | None:
        job = self.job()
        return job if job["state"] == "RUNNING" and job["tasks"]["running"] == job["tasks"]["total"] > 0 else None

    def fresh(self, access_points: int = 1, seconds: float = 30) -> bool:
        """Whether so many access points have rows of the last seconds."""
        return self.number("SELECT uniqExact(ap_id) FROM oal.batch WHERE ts > now64(3) -"
                           f" {seconds}") >= access_points

    def completeness(self) -> dict[str, int]:
        """Batches of all access points since ever: how many, how many of them missing, doubled, refused; and how
        many came after their label windows were closed."""
        names = ("batches", "missing", "dropped", "dead_letters")
        row = self.sql("SELECT sum(batches), sum(missing_batches), sum(rows_dropped), sum(dead_letters) FROM"
                       " oal.v_completeness(from = now() - 86400, to = now() + 60)")
        found = dict(zip(names, map(int, row.split()), strict=True))
        found["late"] = int(self.sql("SELECT count() FROM oal.late"))
        found["doubled"] = int(self.sql("SELECT count() - uniqExact(ap_id, topic, boot_id, seq) FROM oal.batch"))
        return found


def ready(pod: dict) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and any(
        c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def cleanup() -> list[str]:
    """The commands that helm/README.md gives for what an uninstall leaves."""
    lines = (ROOT / "helm" / "README.md").read_text().splitlines()
    found = [line.strip() for line in lines if line.startswith("      kubectl -n oal delete ")]
    assert found, "helm/README.md names no clean-up"
    return found


def write_values(file: Path) -> Path:
    """Over examples/small.yaml: stand-ins of the official images, and sizes for a machine of two cores."""
    tags = images.tags()
    file.write_text(
        json.dumps({
            "images": {
                "kafka": tags["KAFKA_IMAGE"], "clickhouse": tags["CLICKHOUSE_IMAGE"],
                "postgres": tags["POSTGRES_IMAGE"]
            },
            "grafana": {"enabled": False},  # its image cannot be made from packages
            "clickhouse": {"resources": {
                "requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}}}
        }))
    return file
