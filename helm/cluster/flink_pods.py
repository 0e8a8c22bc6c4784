"""Flink's two pods without a kubelet: the chart's own start script, with the files, mounts and account of the pod, in a
file system of its own (bubblewrap), on this machine's network. The API server is the test's real one, so what Flink
keeps there (its leader, its newest checkpoint) is kept there."""
import json
import os
import signal
import ssl
import subprocess
import urllib.request
from pathlib import Path

from control_plane import free_ports
from earlier_chart import ROOT

REPOSITORY = "org.apache.flink"
#: What the official image has beside the jars of platform/local: its part for Kubernetes, and the plugin for S3.
VERSION = "2.3.0"


def jar(name: str) -> Path:
    """One of Flink's jars, copied once from Maven Central to the cache, where platform/images/build looks too."""
    from oal_local.paths import cache_dir
    file = cache_dir() / "dist" / f"{name}-{VERSION}.jar"
    if not file.exists():
        folder = file.parent / f"{name}.partial.{os.getpid()}"
        subprocess.run(["mvn", "-B", "-q", "-Dstyle.color=never",
                        "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
                        f"-Dartifact={REPOSITORY}:{name}:{VERSION}", f"-DoutputDirectory={folder}"], check=True)
        (folder / file.name).rename(file)
        folder.rmdir()
    return file


class FlinkPods:
    """Of release `oal`. `platform` is platform/local's, whose Kafka and ClickHouse the job uses, and whose state folder
    is laid out as the pod's secrets are."""

    def __init__(self, cluster, namespace: str, platform, folder: Path):
        from oal_local import distribution
        self.cluster, self.namespace, self.platform, self.folder = cluster, namespace, platform, folder
        self.rest, *self._ports = free_ports(6)
        self.processes: dict[str, subprocess.Popen] = {}
        library = folder / "flink" / "lib"
        library.mkdir(parents=True)
        for file in sorted(distribution.ensure("flink").glob("*.jar")):
            if "jolokia" not in file.name:
                (library / file.name).symlink_to(file)
        (library / "flink-kubernetes.jar").symlink_to(jar("flink-kubernetes"))
        plugin = folder / "flink" / "plugins" / "s3"
        plugin.mkdir(parents=True)
        (plugin / "flink-s3-fs-hadoop.jar").symlink_to(jar("flink-s3-fs-hadoop"))
        (folder / "volume").mkdir()
        (folder / "hosts").write_text("127.0.0.1 localhost oal-flink\n")

    def values(self, **flink) -> list[str]:
        """For Helm: nothing but Flink is the release's own, on free ports of loopback. `flink`: over it."""
        rpc, blob, task_rpc, task_data, _ = self._ports
        listeners = ("rest.bind-address", "jobmanager.bind-host", "taskmanager.bind-host")
        places = dict.fromkeys(listeners, "127.0.0.1") | {
            "rest.port": self.rest, "jobmanager.rpc.port": rpc, "high-availability.jobmanager.port": rpc,
            "blob.server.port": blob, "taskmanager.rpc.port": task_rpc, "taskmanager.data.port": task_data}
        bootstrap, clickhouse = self.platform.kafka.bootstrap, self.platform.clickhouse.http_url
        off = ("mlflow", "registry", "trainer", "push", "telegraf", "grafana")
        said = {part: {"enabled": False} for part in off} | {
            "kafka": {"enabled": False, "topics": {"manage": False},
                      "external": {"bootstrap": bootstrap, "ports": [int(bootstrap.split(":")[1])]}},
            "clickhouse": {"enabled": False, "migrate": False,
                           "external": {"url": clickhouse, "port": int(clickhouse.rsplit(":", 1)[1])}},
            "flink": {"config": places, **flink}}
        file = self.folder / "values.json"
        file.write_text(json.dumps(said))
        return ["-f", str(file)]

    def start(self, program: Path, job: Path, keys: Path | None = None) -> None:
        """Both pods by the release's ConfigMap as it is now, with the image's start program and the job's jar. `keys`:
        a folder with those of S3."""
        config = self.folder / f"config-{len(list(self.folder.glob('config-*')))}"
        config.mkdir()
        found = json.loads(self.cluster.kubectl("-n", self.namespace, "get", "configmap", "oal-flink", "-o", "json"))
        for name, text in found["data"].items():
            (config / name).write_text(text)
        account = self.folder / "account"
        account.mkdir(exist_ok=True)
        (account / "token").write_text(self.cluster.kubectl("-n", self.namespace, "create", "token", "oal-flink"))
        (account / "ca.crt").write_bytes((self.cluster.folder / "ca.crt").read_bytes())
        (account / "namespace").write_text(self.namespace)
        for role in ("jobmanager", "taskmanager"):
            self._pod(role, program, job, config, account, keys)

    def _pod(self, role: str, program: Path, job: Path, config: Path, account: Path, keys: Path | None) -> None:
        state = self.platform.state.dir
        read_only = {
            "/usr": "/usr", "/etc/ssl": "/etc/ssl", "/etc/java-17-openjdk": "/etc/java-17-openjdk",
            "/etc/alternatives": "/etc/alternatives",
            "/etc/passwd": "/etc/passwd", "/etc/nsswitch.conf": "/etc/nsswitch.conf",
            self.folder / "hosts": "/etc/hosts",
            config: "/etc/oal/flink", account: "/run/secrets/kubernetes.io/serviceaccount",
            state / "pki": "/run/secrets/oal/pki", state / "secrets": "/run/secrets/oal/secrets",
            self.folder / "flink": "/opt/flink", job: "/opt/oal/stream-jobs.jar", program: "/opt/oal/bin/oal-flink",
            ROOT / "platform/local/config/flink/log4j2.properties": "/opt/oal/log4j2.properties"
        } | ({keys: "/run/secrets/oal/s3"} if keys else {})
        # What the links in Flink's folder lead to.
        cache = {file.resolve().parent for file in (self.folder / "flink").rglob("*.jar")}
        read_only |= {folder: str(folder) for folder in cache}
        words = [word for source, target in read_only.items() if Path(source).exists()
                 for word in ("--ro-bind", str(source), str(target))]
        command = [
            "bwrap", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--symlink",
            "/usr/bin", "/bin", "--symlink", "/usr/lib", "/lib", "--symlink", "/usr/lib64", "/lib64", "--symlink",
            "/run", "/var/run", *words, "--bind", str(self.folder / "volume"), "/var/lib/oal/flink", "--chdir",
            "/var/lib/oal", "bash", "/etc/oal/flink/start.sh", role
        ]
        environment = {
            "PATH": "/opt/oal/bin:/usr/bin:/bin", "HOME": "/var/lib/oal", "HOSTNAME": f"oal-flink-{role}-0",
            "POD_IP": "127.0.0.1", "OAL_HEAP_MIB": {"jobmanager": "320", "taskmanager": "640"}[role],
            "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.cluster.api),
            # Minutes: the optimising compiler would not pay.
            "OAL_JVM_OPTIONS": "-XX:TieredStopAtLevel=1"
        }
        with open(self.log(role), "ab") as log:
            self.processes[role] = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT,
                                                    stdin=subprocess.DEVNULL, start_new_session=True)

    def log(self, role: str) -> Path:
        return self.folder / f"{role}.log"

    def stop(self, number: int = signal.SIGKILL) -> None:
        """As a node that is lost: nothing is said to Flink."""
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, number)
        for process in self.processes.values():
            process.wait(60)
        self.processes.clear()

    def get(self, path: str) -> dict:
        pki = self.platform.state.pki
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "operator.crt", pki / "operator.key")
        with urllib.request.urlopen(f"https://localhost:{self.rest}{path}", timeout=5, context=context) as answer:
            return json.load(answer)

    def job(self) -> dict | None:
        """Of the one job when each of its tasks runs: id, parallelism, checkpoint interval in ms, newest completed
        checkpoint, the checkpoint that it was restored from."""
        for role, process in self.processes.items():
            assert process.poll() is None, f"{role} ended:\n{self.log(role).read_text()[-3000:]}"
        try:
            jobs = self.get("/jobs/overview")["jobs"]
            if not jobs or jobs[0]["state"] != "RUNNING" or jobs[0]["tasks"]["running"] != jobs[0]["tasks"]["total"]:
                return None
            found = self.get(f"/jobs/{jobs[0]['jid']}/checkpoints")
            vertices = self.get(f"/jobs/{jobs[0]['jid']}")["vertices"]
            interval = self.get(f"/jobs/{jobs[0]['jid']}/checkpoints/config")["interval"]
        except OSError:
            return None
        return {"id": jobs[0]["jid"], "parallelism": max(v["parallelism"] for v in vertices), "interval_ms": interval,
                "restored": found["latest"].get("restored"), "completed": found["latest"].get("completed")}
