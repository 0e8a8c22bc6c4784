"""More than one ClickHouse server: shards, replicas, Keeper."""
import os
import re
import socket
import ssl
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from xml.etree import ElementTree

import pytest
from conftest import CHART, ROOT
from manifests import (
    EXAMPLES,
    allowed,
    component,
    containers,
    find,
    labels,
    mounted_secrets,
    name,
    pod,
    selects,
    workloads,
)

CLUSTER = "clickhouse-cluster"  # the example: two shards with two replicas each
SHARDS = "clickhouse.shards=3"


def servers(objects) -> list[dict]:
    return [w for w in workloads(objects) if component(w) == "clickhouse"]


def hosts(stateful_set: dict) -> list[str]:
    """The names that Kubernetes gives its pods."""
    spec = stateful_set["spec"]
    return [f"{stateful_set['metadata']['name']}-{i}.{spec['serviceName']}" for i in range(spec["replicas"])]


def config(objects, of="oal-clickhouse", file="config.xml") -> ElementTree.Element:
    return ElementTree.fromstring(find(objects, "ConfigMap", of)["data"][file])


def migrate(objects) -> list[str]:
    return pod(next(w for w in workloads(objects) if component(w) == "migrate"))["containers"][0]["args"]


def after(arguments: list[str], option: str) -> list[str]:
    return [value for word, value in zip(arguments, arguments[1:]) if word == option]


@pytest.mark.parametrize("values", [v for v in EXAMPLES if v != (CLUSTER,)], ids=lambda v: "+".join(v) or "default")
def test_one_server_has_no_cluster_and_no_keeper(chart, values):
    objects = chart.objects(*values)
    # an alert's sentence may name Keeper; it fires where there is one
    text = "---\n".join(o for o in chart.text(*values).split("---\n") if "\nkind: PrometheusRule\n" not in o)
    assert [w["metadata"]["name"] for w in servers(objects)] in (["oal-clickhouse"], [])
    assert not re.search(
        "<remote_servers>|<zookeeper>|<interserver|clickhouse-keeper|clickhouse-pods|oal/shard|clickhouse-cluster",
        text)
    # clickhouse/users, which every server has, names settings and rights that mean nothing without a cluster.
    assert not any("distributed_" in text
                   for o in objects if o["kind"] == "ConfigMap" and o["metadata"]["name"] != "oal-clickhouse-users"
                   for text in (o.get("data") or {}).values())
    assert "--cluster" not in migrate(objects) and len(after(migrate(objects), "--url")) == 1


def test_shards_are_stateful_sets_and_every_server_knows_every_pod(chart):
    objects = chart.objects(SHARDS)
    sets = servers(objects)
    assert [s["metadata"]["name"] for s in sets] == ["oal-clickhouse-0", "oal-clickhouse-1", "oal-clickhouse-2"]
    cluster = config(objects).find("remote_servers/oal")
    assert cluster.find("secret").get("from_env") == "OAL_CLICKHOUSE_CLUSTER_SECRET"
    assert [[r.findtext("host") for r in shard.iter("replica")]
            for shard in cluster.iter("shard")] == [hosts(s) for s in sets]
    assert {r.findtext("port") for r in cluster.iter("replica")} == {"9000"}
    users = config(objects, file="users.xml")
    assert users.findtext("profiles/default/distributed_foreground_insert") == "1"


def test_shards_alone_need_no_keeper(chart):
    objects = chart.objects(SHARDS)
    assert not [name(o) for o in objects if "keeper" in o["metadata"]["name"]]
    whole = config(objects)
    assert {shard.findtext("internal_replication") for shard in whole.iter("shard") if len(shard)} == {"false"}
    assert not [
        tag for tag in ("zookeeper", "interserver_https_port", "interserver_http_host") if whole.find(tag) is not None
    ]
    assert "--replicated" not in migrate(objects)


def test_replicas_copy_each_other_by_way_of_keeper(chart):
    objects = chart.objects(CLUSTER)
    whole = config(objects)
    sets = servers(objects)
    assert [[r.findtext("host") for r in shard.iter("replica")]
            for shard in whole.find("remote_servers/oal").iter("shard")] == [hosts(s) for s in sets]
    assert {shard.findtext("internal_replication")
            for shard in whole.find("remote_servers/oal").iter("shard")} == {"true"}
    assert [shard.get("from_env")
            for shard in whole.find("macros")] == [None, "OAL_CLICKHOUSE_SHARD", "OAL_CLICKHOUSE_REPLICA"]
    assert whole.findtext("interserver_https_port") == "9009" and whole.find("interserver_http_host").get(
        "from_env") == "OAL_CLICKHOUSE_HOST"
    assert whole.find("interserver_http_credentials/password").get("from_env") == "OAL_CLICKHOUSE_CLUSTER_SECRET"

    keeper = find(objects, "StatefulSet", "oal-clickhouse-keeper")
    assert [node.findtext("host") for node in whole.find("zookeeper")] == hosts(keeper) and len(hosts(keeper)) == 3
    its = config(objects, "oal-clickhouse-keeper", "keeper.xml").find("keeper_server")
    assert [(m.findtext("id"), m.findtext("hostname"))
            for m in its.iter("server")] == [(str(i), host) for i, host in enumerate(hosts(keeper), start=1)]
    assert its.find("server_id").get("from_env") == "OAL_KEEPER_ID" and its.findtext(
        "coordination_settings/force_sync") == "true"
    # Ports of the configuration, the container and the clients are the same.
    ports = {p["name"]: str(p["containerPort"]) for p in containers(keeper)[0]["ports"]}
    assert ports == {
        "client": its.findtext("tcp_port_secure"), "control": its.findtext("http_control/port"),
        "raft": its.findtext(".//raft_configuration/server/port")
    }
    assert {node.findtext("port") for node in whole.find("zookeeper")} == {ports["client"]}
    # What it keeps is on its volume.
    mounts = {m["name"]: m["mountPath"] for m in containers(keeper)[0]["volumeMounts"]}
    assert all(
        its.findtext(path).startswith(mounts["data"])
        for path in ("storage_path", "log_storage_path", "snapshot_storage_path"))
    assert keeper["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "data"
    assert {
        len(
            hosts(
                find(chart.objects(CLUSTER, f"clickhouse.keeper.replicas={n}"), "StatefulSet",
                     "oal-clickhouse-keeper"))) for n in (1, 5)
    } == {1, 5}


def test_one_shard_with_replicas_is_a_cluster_too(chart):
    objects = chart.objects("clickhouse.replicas=3")
    assert [hosts(s) for s in servers(objects)] == [[f"oal-clickhouse-0-{i}.oal-clickhouse-pods" for i in range(3)]]
    assert "--replicated" in migrate(objects) and find(objects, "StatefulSet", "oal-clickhouse-keeper")


@pytest.mark.parametrize("values", [(), (SHARDS,), (CLUSTER,)], ids=str)
def test_configurations_are_well_formed(chart, values):
    """ElementTree says where, if one is not."""
    read = [
        (file, ElementTree.fromstring(text)) for o in chart.objects(*values)
        if o["kind"] == "ConfigMap" and "clickhouse" in o["metadata"]["name"] for file, text in o["data"].items()
        if file.endswith(".xml")
    ]
    assert len(read) > 4
    # clickhouse-client has a file of its own kind.
    assert all(root.tag == ("config" if file.startswith("client") else "clickhouse") for file, root in read)


def test_pods_have_names_before_they_are_ready_and_one_service_asks_any_of_them(chart):
    objects = chart.objects(CLUSTER)
    for workload in (*servers(objects), find(objects, "StatefulSet", "oal-clickhouse-keeper")):
        service = find(objects, "Service", workload["spec"]["serviceName"])["spec"]
        assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"] is True and selects(
            {"matchLabels": service["selector"]}, labels(workload))
        named = {p["name"] for p in containers(workload)[0]["ports"]}
        assert {p["targetPort"] for p in service["ports"]} <= named
    asked = find(objects, "Service", "oal-clickhouse")["spec"]
    assert all(selects({"matchLabels": asked["selector"]}, labels(s)) for s in servers(objects))
    assert not selects({"matchLabels": asked["selector"]}, labels(find(objects, "StatefulSet",
                                                                       "oal-clickhouse-keeper")))
    # And no StatefulSet takes another's pods for its own.
    for s in servers(objects):
        assert [selects(s["spec"]["selector"], labels(other)) for other in servers(objects)].count(True) == 1


def test_replicas_are_kept_apart_and_a_drain_takes_one_server_at_a_time(chart):
    objects = chart.objects(CLUSTER)
    for part in ("clickhouse", "clickhouse-keeper"):
        budget = find(objects, "PodDisruptionBudget", f"oal-{part}")["spec"]
        members = [w for w in workloads(objects) if component(w) == part]
        assert budget["maxUnavailable"] == 1 and all(selects(budget["selector"], labels(w)) for w in members)
        assert all(
            {c["topologyKey"]
             for c in pod(w)["topologySpreadConstraints"]} == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
            for w in members)
    for s in servers(objects):
        terms = [
            t["podAffinityTerm"]
            for t in pod(s)["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        ]
        assert {t["topologyKey"] for t in terms} == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
        assert all([selects(t["labelSelector"], labels(other))
                    for other in servers(objects)].count(True) == 1 and selects(t["labelSelector"], labels(s))
                   for t in terms)


def test_the_migrations_are_told_every_server(chart):
    for values, copies in (((SHARDS,), False), ((CLUSTER,), True)):
        objects = chart.objects(*values)
        said = migrate(objects)
        assert after(said, "--url") == [f"https://{host}:8123" for s in servers(objects) for host in hosts(s)]
        assert after(said, "--cluster") == [child.tag for child in config(objects).find("remote_servers")
                                            ] and ("--replicated" in said) == copies
        assert after(said, "--database") == ["oal"]


def test_a_new_shard_has_the_migrations_run_again_and_changes_no_other_s_volumes(chart):
    fewer, more = (chart.objects(f"clickhouse.shards={n}") for n in (2, 3))
    jobs = [
        next(w["metadata"]["name"] for w in workloads(objects) if component(w) == "migrate")
        for objects in (fewer, more)
    ]
    assert jobs[0] != jobs[1]
    # Kubernetes lets nobody change these.
    fixed = [{
        s["metadata"]["name"]: [
            s["spec"][key] for key in ("serviceName", "selector", "volumeClaimTemplates", "podManagementPolicy")
        ] for s in servers(objects)
    } for objects in (fewer, more)]
    assert fixed[0].items() <= fixed[1].items()


def test_clients_ask_any_server_and_telegraf_reads_each(chart):
    objects = chart.objects(CLUSTER)
    every = [f"https://{host}:8123" for s in servers(objects) for host in hosts(s)]
    env = {e["name"]: e["value"] for e in containers(find(objects, "Deployment", "oal-telegraf"))[0]["env"]}
    assert env["OAL_CLICKHOUSE_URLS"].split(",") == every and env["OAL_CLICKHOUSE_URL"] == "https://oal-clickhouse:8123"
    assert "clickhouse.url=https://oal-clickhouse:8123\n" in find(objects, "ConfigMap",
                                                                 "oal-flink")["data"]["job.properties"]


def test_a_backup_is_of_each_shard_and_each_server_has_a_volume_for_it(chart):
    objects = chart.objects(CLUSTER)
    section = tomllib.loads(find(objects, "ConfigMap", "oal-backup")["data"]["backup.toml"])["clickhouse"]
    assert section["urls"] == [f"https://{hosts(s)[0]}:8123" for s in servers(objects)
                               ] and section["database"] == "oal_shard" and "url" not in section
    for s in servers(objects):
        assert [claim["metadata"]["name"] for claim in s["spec"]["volumeClaimTemplates"]] == ["data", "backups"]
        assert not any("persistentVolumeClaim" in volume for volume in pod(s)["volumes"])
        assert {m["name"]: m["mountPath"]
                for m in containers(s)[0]["volumeMounts"]}["backups"] == "/var/lib/clickhouse-backups"
    one = tomllib.loads(find(chart.objects("fleet"), "ConfigMap", "oal-backup")["data"]["backup.toml"])["clickhouse"]
    assert one["url"] == "https://oal-clickhouse:8123" and not {"urls", "database"} & one.keys()


def test_network_policies_let_servers_and_keeper_speak_and_nobody_else_with_them(chart):
    def reach(*values):
        objects = chart.objects(*values)
        policies = [o for o in objects if o["kind"] == "NetworkPolicy"]
        of = {component(w): labels(w) for w in workloads(objects)}
        return lambda source, target, port: allowed(policies, of[source], of[target], port)
    reaches = reach(CLUSTER)
    for source, target, port in (("clickhouse", "clickhouse", 9000), ("clickhouse", "clickhouse", 9009),
                                 ("clickhouse", "clickhouse-keeper", 9181), ("clickhouse-keeper", "clickhouse-keeper",
                                                                             9234), ("migrate", "clickhouse", 8123),
                                 ("telegraf", "clickhouse", 8123), ("backup", "clickhouse",
                                                                    8123), ("flink-taskmanager", "clickhouse", 8123)):
        assert reaches(source, target, port), (source, target, port)
    for source, target, port in (("grafana", "clickhouse", 9000), ("grafana", "clickhouse",
                                                                   9009), ("telegraf", "clickhouse-keeper", 9181),
                                 ("migrate", "clickhouse-keeper", 9181), ("clickhouse", "clickhouse-keeper", 9234),
                                 ("clickhouse", "clickhouse-keeper", 9182), ("clickhouse-keeper", "clickhouse", 8123)):
        assert not reaches(source, target, port), (source, target, port)
    shards = reach(SHARDS)
    assert shards("clickhouse", "clickhouse", 9000) and not shards("clickhouse", "clickhouse", 9009)
    assert not reach()("clickhouse", "clickhouse", 9000)


def test_the_servers_secret_is_asked_for_in_a_cluster_only_and_by_its_servers_only(chart):
    for values in ((), ("existing-secrets",), (SHARDS,), (CLUSTER,), ("existing-secrets", SHARDS)):
        holders = {
            component(w) for w in workloads(chart.objects(*values)) for keys in mounted_secrets(w).values()
            if "clickhouse-cluster.secret" in keys
        }
        assert holders == ({"clickhouse"} if SHARDS in values or CLUSTER in values else set()), values
    # What pki.mode existing asks for comes from the same list; helm/cluster has it asked.
    assert "oal.clickhouse.secrets" in (CHART / "templates/_existing.tpl").read_text()


def test_an_existing_clickhouse_is_not_taken_for_a_cluster(chart):
    assert "clickhouse.shards, clickhouse.replicas" in chart.refusal("clickhouse-operator", "clickhouse.shards=2")


class Server:
    """The start script and configuration of POD, with the paths moved into a folder below FOLDER, and the engine that
    can be had here (clickhouse/tests/server.py) in the place of clickhouse-server. As a client of the others it speaks
    TLS as configured; as a server it cannot, so a program in front of it does, with the configured certificate."""

    def __init__(self, folder, pod_name: str):
        self.folder, self.pod, self.process = folder / pod_name, pod_name, None
        (self.folder / "users.d").mkdir(parents=True, exist_ok=True)
        self.front: subprocess.Popen | None = None
        self.http, self.native, self.plain_http, self.plain_native = (free_port() for _ in range(4))
        self.url = f"https://127.0.0.1:{self.http}"

    def start(self, objects, others: list, secrets, python: str, engine: str) -> None:
        files = find(objects, "ConfigMap", "oal-clickhouse")["data"]
        text = files["config.xml"].replace("/var/lib/clickhouse/",
                                           f"{self.folder}/data/").replace("/var/lib/clickhouse-backups/",
                                                                           f"{secrets.parent}/backups/")
        text = text.replace("0.0.0.0", "127.0.0.1").replace("/run/secrets/oal/pki", str(secrets.parent / "state/pki"))
        certificate, key = (
            ElementTree.fromstring(text).findtext(f"openSSL/server/{of}File") for of in ("certificate", "privateKey"))
        for secure, port, plain in (("https_port", 8123, self.plain_http), ("tcp_port_secure", 9000,
                                                                            self.plain_native)):
            assert f"<{secure}>{port}</{secure}>" in text
            name = {"https_port": "http_port", "tcp_port_secure": "tcp_port"}[secure]
            text = text.replace(f"<{secure}>{port}</{secure}>", f"<{name}>{plain}</{name}>")
        self.context = ssl.create_default_context(cafile=secrets.parent / "state/pki/ca.crt")
        for other in others:
            text = text.replace(f"<host>{other.pod}.oal-clickhouse-pods</host><port>9000",
                                f"<host>127.0.0.1</host><port>{other.native}")
        # clickhouse-local wants to be told where its users are, and logs in as `default` itself.
        text = text.replace(
            "</clickhouse>",
            "<user_directories><users_xml><path>users.xml</path></users_xml></user_directories></clickhouse>")
        (self.folder / "config.xml").write_text(text)
        (self.folder / "users.xml").write_text(
            files["users.xml"].replace(
                "<users>",
                "<users><default><password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile>"
                "<quota>default</quota></default>",
            )
        )
        for file, content in find(objects, "ConfigMap", "oal-clickhouse-users")["data"].items():
            (self.folder / "users.d" / file).write_text(content)
        script = files["start.sh"].replace("/run/secrets/oal/secrets", str(secrets))
        script = script.replace("exec clickhouse-server --config-file=/etc/oal/clickhouse/config.xml",
                                'exec "$PYTHON" -c "$ENGINE" "$FOLDER"')
        assert "$ENGINE" in script
        with open(self.folder / "log", "ab") as log:
            self.front = subprocess.Popen([
                sys.executable, ROOT / "platform/images/standin/clickhouse/tls_front.py", certificate, key,
                "0.0.0.0", f"{self.http}={self.plain_http}", f"{self.native}={self.plain_native}"
            ], stdin=subprocess.PIPE, stdout=log, stderr=log)
            self.process = subprocess.Popen(
                ["bash", "-c", script], stdin=subprocess.PIPE, stdout=log, stderr=log, env={
                    "PATH": os.environ["PATH"], "HOSTNAME": self.pod, "PYTHON": python, "ENGINE": engine,
                    "FOLDER": str(self.folder)
                })
        deadline = time.monotonic() + 120
        while not self.listens():
            assert self.process.poll() is None and time.monotonic() < deadline, (self.folder
                                                                                 / "log").read_text()[-3000:]
            time.sleep(0.2)

    def listens(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/ping", timeout=5, context=self.context):
                return True
        except OSError:
            return False

    def ask(self, sql: str) -> str:
        request = urllib.request.Request(self.url, data=sql.encode(),
                                         headers={"X-ClickHouse-User": "admin", "X-ClickHouse-Key": "of admin"})
        with urllib.request.urlopen(request, timeout=60, context=self.context) as answer:
            return answer.read().decode().strip()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Platform:
    """The servers of a rendering, as processes."""

    def __init__(self, chart, folder):
        self.chart, self.folder, self.servers = chart, folder, {}
        (folder / "backups").mkdir()
        (folder / "kept").mkdir()
        self.secrets = folder / "secrets"
        self.secrets.mkdir()
        for key in mounted_secrets(servers(chart.objects(SHARDS))[0])["oal-secrets"]:
            (self.secrets / key).write_text(f"of {key.removeprefix('clickhouse-').removesuffix('.password')}")
        subprocess.run([ROOT / "platform/security/oal-ca", "init", folder / "state"], check=True, capture_output=True)
        venv = subprocess.run([ROOT / "platform/setup/venv", ROOT / "clickhouse/requirements.txt"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip()
        sys.path.insert(0, str(ROOT / "clickhouse/tests"))
        try:
            import server
        finally:
            sys.path.pop(0)
        self.engine = (f"{venv}/bin/python", server.CHILD)

    def start(self, *values) -> list[Server]:
        """Those of VALUES and no others, in the order of the shards; each begins anew with its data."""
        objects = self.chart.objects(*values)
        names = [host.split(".")[0] for s in servers(objects) for host in hosts(s)]
        for pod_name in names:
            self.servers.setdefault(pod_name, Server(self.folder, pod_name))
        wanted = [self.servers[pod_name] for pod_name in names]
        self.stop()
        for server in wanted:
            server.start(objects, wanted, self.secrets, *self.engine)
        return wanted

    def migrate(self, *values, believes: bool = True) -> None:
        """With the arguments of the Job; without its --ca-file nothing is migrated."""
        words = [
            word.replace("/run/secrets/oal/secrets", str(self.secrets)).replace(
                "/etc/oal/migrate", str(ROOT / "clickhouse/migrations")).replace("/run/secrets/oal/pki",
                                                                                 str(self.folder / "state/pki"))
            for word in migrate(self.chart.objects(*values))[1:]
        ]
        if not believes:
            at = words.index("--ca-file")
            words[at:at + 2] = []
            words[words.index("--wait") + 1] = "0"
        for server in self.servers.values():
            # One server is asked by its Service.
            address = "oal-clickhouse" if server.pod == "oal-clickhouse-0" else f"{server.pod}.oal-clickhouse-pods"
            words = [word.replace(f"https://{address}:8123", server.url) for word in words]
        done = subprocess.run([ROOT / "clickhouse/migrate", *words], capture_output=True, text=True)
        assert (done.returncode == 0) == believes, done.stdout + done.stderr
        assert believes or "certificate verify failed" in done.stderr

    def backup(self, at: Server, *words: str) -> None:
        """oal-backup with the configuration of one server."""
        objects = self.chart.objects("fleet")
        text = find(objects, "ConfigMap", "oal-backup")["data"]["backup.toml"].split("[mlflow]")[0]
        for path, moved in {
                "/var/lib/oal/backups": self.folder / "kept", "/run/secrets/oal/secrets": self.secrets,
                "/run/secrets/oal/pki": self.folder / "state/pki",
                "/var/lib/clickhouse-backups": self.folder / "backups", "https://oal-clickhouse:8123": at.url
        }.items():
            text = text.replace(path, str(moved))
        (self.folder / "backup.toml").write_text(text)
        done = subprocess.run([ROOT / "platform/backup/oal-backup", "--config", self.folder / "backup.toml", *words],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def stop(self, in_order: bool = True) -> None:
        """All at once, for in order each takes seconds."""
        for server in self.servers.values():
            if server.front:
                server.front.stdin.close()
                server.front.wait(60)
                server.front = None
        running = [server.process for server in self.servers.values() if server.process]
        for process in running:
            process.stdin.close() if in_order else process.kill()
        for process in running:
            process.wait(60)


@pytest.fixture
def platform(chart, tmp_path):
    made = Platform(chart, tmp_path)
    try:
        yield made
    finally:
        made.stop(in_order=False)


ROWS = "INSERT INTO oal.gap (ap_id, ts) SELECT concat('ap-', toString(number)), now() - number FROM numbers({}, 100)"
EVERY, HERE = "SELECT count(), uniqExact(ap_id) FROM oal.gap", "SELECT count() FROM oal_shard.gap"


def test_shards_start_are_migrated_and_are_one_database_and_one_more_has_its_share_of_new_rows(platform):
    """The rendered start script, configuration and arguments of the Job, with real servers."""
    two = platform.start("clickhouse.shards=2")
    assert [server.ask("SELECT getMacro('shard'), getMacro('replica'), getMacro('cluster')").split()
            for server in two] == [["0", "oal-clickhouse-0-0", "oal"], ["1", "oal-clickhouse-1-0", "oal"]]
    # Each lets the other in by the secret, as the same user.
    assert [
        server.ask(
            "SELECT count(), uniqExact(getMacro('shard')), any(currentUser()) FROM cluster('oal', system.one)").split()
        for server in two
    ] == [["2", "2", "admin"]] * 2
    # A server under a name that its certificate has not is not believed.
    with pytest.raises(urllib.error.HTTPError) as refused:
        two[0].ask(f"SELECT * FROM remoteSecure('127.0.0.2:{two[1].native}', system.one, 'admin', 'of admin')")
    assert b"Certificate validation error" in refused.value.read()
    platform.migrate("clickhouse.shards=2", believes=False)
    platform.migrate("clickhouse.shards=2")
    two[0].ask(ROWS.format(0))
    before = [int(server.ask(HERE)) for server in two]
    assert sum(before) == 100 and min(before) > 20 and [server.ask(EVERY) for server in two] == ["100\t100"] * 2

    three = platform.start(SHARDS)
    platform.migrate(SHARDS)
    assert [int(server.ask(HERE)) for server in three] == [*before, 0] and [server.ask(EVERY)
                                                                            for server in three] == ["100\t100"] * 3
    three[2].ask(ROWS.format(50))
    now = [int(server.ask(HERE)) for server in three]
    assert now[2] > 10 and sum(now) == 200 and [server.ask(EVERY) for server in three] == ["200\t150"] * 3


def test_a_backup_of_one_server_becomes_the_first_share_of_a_cluster(platform):
    """As docs/upgrade.md says it."""
    one, = platform.start("clickhouse.backup.enabled=true")
    platform.migrate()
    one.ask(ROWS.format(0))
    platform.backup(one, "create")
    kept, = (folder.name for folder in (platform.folder / "kept").iterdir())

    values = ("clickhouse.shards=2", "clickhouse.backup.enabled=true")
    two = platform.start(*values)
    platform.backup(two[0], "restore", kept, "--only", "clickhouse", "--as", "oal_shard")
    platform.migrate(*values)
    assert [server.ask(EVERY) for server in two] == ["100\t100"] * 2 and two[1].ask(HERE) == "0"
    two[1].ask(ROWS.format(100))
    assert [server.ask(EVERY) for server in two] == ["200\t200"] * 2 and int(two[1].ask(HERE)) > 20
