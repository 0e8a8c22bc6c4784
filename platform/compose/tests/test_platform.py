"""The whole platform as Compose starts it, on stand-ins: from nothing to rows that grow, through crashes and an
upgrade, to nothing again.

The tests share one project and run in this order.
"""
import json
import os
import shlex
import signal
import time
import uuid

import pytest
from composed import PROFILES, Project
from docker_engine import OWN, ROOT, Engine, build, run, tags
from pages import commands

BENCH = ROOT / "build" / "bench"
ROWS = (
    "SELECT sum(total_rows) FROM system.tables WHERE database = 'oal' AND name IN ('queue', 'station', 'packet',"
    " 'flow', 'label')"
)
MIB = 2**20


@pytest.fixture(scope="module")
def engine():
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def project(engine, tmp_path_factory):
    began = time.monotonic()
    build("standins", *OWN)
    made = Project(engine, f"oal-test-{uuid.uuid4().hex[:6]}", tmp_path_factory.mktemp("oal") / "state")
    print(f"\n  images: {time.monotonic() - began:.0f} s")
    try:
        yield made
    finally:
        made("down", "-v", "--remove-orphans", "-t", "20", timeout=300, check=False)


def record(name: str, value: float, unit: str, note: str) -> None:
    """A figure for build/bench, in place of the one of that name."""
    BENCH.mkdir(parents=True, exist_ok=True)
    file = BENCH / "compose.json"
    others = [figure for figure in json.loads(file.read_text()) if figure["name"] != name] if file.exists() else []
    file.write_text(
        json.dumps(
            [*others, {"name": name, "value": value, "unit": unit, "command": "make test-compose", "note": note}],
            indent=1) + "\n")


def grows(project, query: str = ROWS, seconds: float = 120) -> int:
    before = project.number(query)
    return project.until("rows arrive", lambda: (now := project.number(query)) > before and now, seconds)


def test_up_from_nothing_ends_with_everything_healthy(project):
    seconds = project.up()
    states = {
        name: (c["State"]["Status"], c["State"].get("Health", {}).get("Status"), c["State"]["ExitCode"])
        for name, c in project.containers().items()
    }
    for name, (status, health, code) in states.items():
        assert (status, code) == ("exited", 0) if name in ("secrets", "agent", "topics",
                                                           "migrate") else (status, health) == ("running",
                                                                                                "healthy"), states
    print(f"\n  up --wait from nothing: {seconds:.0f} s")
    record("compose-up", round(seconds, 1), "s",
           "up --wait from nothing, all profiles but Grafana, images built; stand-ins of the official images")


def test_rows_arrive_and_grow_and_none_is_refused(project):
    project.until("three access points have rows",
                  lambda: project.number("SELECT uniqExact(ap_id) FROM oal.queue") >= 3)
    assert grows(project) > 0
    project.until("windows are labelled", lambda: project.number("SELECT count() FROM oal.label") > 0)
    refused = project.sql("SELECT reason, count() FROM oal.dead_letter GROUP BY reason")
    assert refused == ""


def test_access_points_get_models_and_predict(project):
    project.until("the trainer decides", lambda: project.number("SELECT count() FROM oal.tree_decision") > 0, 240)
    project.until("a tree is in force",
                  lambda: project.number("SELECT count() FROM oal.bundle_status WHERE state IN (1, 3)") > 0, 240)
    project.until("predictions", lambda: project.number("SELECT count() FROM oal.decision") > 0, 120)


def test_telegraf_tells_of_every_part(project):
    wanted = {"kafka", "jobmanager", "taskmanager", "clickhouse", "push", "trainer", "model-registry", "mlflow", "host"}
    project.until("figures of every part",
                  lambda: wanted <= set(project.sql("SELECT DISTINCT component FROM oal.platform_metric").split()))

    def all_up():
        ill = project.sql("SELECT component, said FROM oal.v_platform_health_now WHERE NOT up")
        assert not ill, ill
        return True

    project.until("every part is said to be up", all_up)


def test_nobody_listens_to_a_stranger(project):
    pki = project.state / "pki"
    # Without a certificate, and with one of a foreign authority: neither Kafka nor Flink nor push talk.
    for port in (9094, 8081, 8443):
        said = project.engine.inside(
            "bash",
            "-c",
            f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 10 openssl s_client -quiet -connect 127.0.0.1:{port}"
            f" -CAfile {pki}/ca.crt 2>&1",
            check=False,
        ).stdout
        assert "HTTP/1.1 200" not in said and ("alert" in said or "error" in said or "errno" in said), f"{port}: {said}"
    for url in ("https://localhost:8123/?query=SELECT+1", "https://localhost:8080/v1/fleet",
                "https://localhost:8080/metrics",
                "https://localhost:5000/api/2.0/mlflow/experiments/search?max_results=1"):
        code = answers(project, url, *project.trust)
        assert code in ("401", "403", "404", "516"), f"{url}: {code}"
    assert answers(project, "https://localhost:8123/?query=SELECT+1", *project.trust, "-u", "default:") != "200"


def answers(project, url: str, *options) -> str:
    """The status; 000 where there is no connection, or none that curl believes."""
    return project.engine.inside("curl", "-s", "-m", "20", *options, "-o", "/dev/null", "-w", "%{http_code}", url,
                                 check=False).stdout


def test_between_the_services_nothing_is_plain(project):
    for path in ("8123/ping", "8080/healthz", "5000/health"):
        assert answers(project, f"https://localhost:{path}", *project.trust) == "200", path
        assert answers(project, f"https://localhost:{path}") == "000", path
        assert answers(project, f"http://localhost:{path}") in ("000", "400"), path
    for plain, where in ((True, "http://kafka:8778/jolokia/version"), (True, "http://registry:8081/healthz"),
                         (True, "http://trainer:8082/healthz"), (False, "https://registry:8081/healthz"),
                         (False, "https://trainer:8082/healthz")):
        said = project("exec", "-T", "telegraf", "sh", "-c", f"oal-health {where} || echo refused", check=False)
        assert ("refused" in said) == plain, f"{where}: {said}"
        if not plain:
            said = project("exec", "-T", "-e", "OAL_CA_FILE=/none", "telegraf", "sh", "-c",
                           f"oal-health {where} || echo refused", check=False)
            assert "refused" in said, where
    asked = project("exec", "-T", "-e", "PGPASSWORD=x", "postgres", "sh", "-c",
                    "psql 'host=postgres user=push dbname=push sslmode=disable' -c 'SELECT 1' 2>&1 || true")
    assert "no encryption" in asked, asked


def test_containers_run_as_nobody_and_hold_only_their_own_secrets(project):
    for name, container in project.containers().items():
        assert container["HostConfig"]["ReadonlyRootfs"] and container["HostConfig"]["CapDrop"] == ["ALL"], name
        assert not any("password" in entry.lower() and "_file=" not in entry.lower()
                       for entry in container["Config"]["Env"]), name
        if name != "secrets":
            assert container["Config"]["User"].split(":")[0] not in ("", "0", "root"), name
    held = project("exec", "-T", "push", "ls", "/run/secrets/oal").split()
    assert "ca.key" not in held and "broker.pem" not in held and "deploy.key" in held
    assert "refused" in project("exec", "-T", "push", "sh", "-c", "echo x >/etc/oal/x || echo refused",
                                check=False).strip().splitlines()


def test_up_again_changes_nothing(project):
    lasting = {
        name: (c["Id"], c["State"]["StartedAt"]) for name, c in project.containers().items() if c["State"]["Running"]
    }
    project.up()
    assert {
        name: (c["Id"], c["State"]["StartedAt"]) for name, c in project.containers().items() if c["State"]["Running"]
    } == lasting


@pytest.mark.parametrize("service", ["taskmanager", "jobmanager", "clickhouse", "kafka", "push"])
def test_a_killed_service_comes_back_and_rows_go_on(project, service):
    victim = project.containers()[service]
    os.kill(victim["State"]["Pid"], signal.SIGKILL)
    project.until(
        f"{service} is another process and well", lambda: (c := project.containers()[service])["State"]["Pid"] not in
        (0, victim["State"]["Pid"]) and c["State"]["Health"]["Status"] == "healthy", 240)
    project.until(
        "every task runs", lambda: all(j["state"] == "RUNNING" and j["tasks"]["running"] == j["tasks"]["total"]
                                       for j in project.flink("/jobs/overview")["jobs"]), 240)
    grows(project, seconds=240)
    if service == "jobmanager":
        assert "resumes from /var/lib/oal/checkpoints/run-" in project("logs", "jobmanager")
    assert project.sql("SELECT reason, count() FROM oal.dead_letter GROUP BY reason") == ""


def test_an_upgrade_keeps_everything(project, engine):
    """Volumes stay over `down`; `up` with another tag goes on from them."""
    def models():
        secret = project.secret("mlflow-admin.password")
        found = project.get("https://localhost:5000/api/2.0/mlflow/experiments/search?max_results=100", "-u",
                            f"admin:{secret}")
        return {e["name"] for e in found["experiments"]}

    def fleet():
        found = project.get("https://localhost:8080/v1/fleet", "-H",
                            f"Authorization: Bearer {project.secret('push-admin.token')}")
        return {ap["ap_id"] for ap in found["aps"]}

    before = {
        "rows": project.number(ROWS), "models": models(), "fleet": fleet(),
        "ca": (project.state / "pki" / "ca.crt").read_bytes(), "password": project.secret("clickhouse-admin.password")
    }
    assert before["fleet"] >= {"ap-congested", "ap-varying", "ap-learning"} and before["models"]
    project("down", "-t", "25", timeout=300)
    newer = f"{tags()['OAL_VERSION']}-next"
    for name, tag in tags().items():
        if name.startswith("OAL_") and name.endswith("_IMAGE"):
            engine.docker("tag", tag, f"{tag.rpartition(':')[0]}:{newer}")
    project.environment["OAL_VERSION"] = newer
    try:
        seconds = project.up()
        assert {
            c["Config"]["Image"].rpartition(":")[2] for c in project.containers().values()
            if c["Config"]["Image"].startswith("oal-") and "standin" not in c["Config"]["Image"]
        } == {newer}
        assert project.number(ROWS) >= before["rows"]
        assert models() >= before["models"] and fleet() >= before["fleet"]
        assert (project.state / "pki" / "ca.crt"
                ).read_bytes() == before["ca"] and project.secret("clickhouse-admin.password") == before["password"]
        assert "resumes from" in project("logs", "jobmanager")
        grows(project, seconds=240)
        assert project.sql("SELECT reason, count() FROM oal.dead_letter GROUP BY reason") == ""
        print(f"\n  up --wait after an upgrade: {seconds:.0f} s")
        record("compose-up-after-upgrade", round(seconds, 1), "s", "up --wait with another tag on the volumes of a run")
    finally:
        for name, tag in tags().items():
            if name.startswith("OAL_") and name.endswith("_IMAGE"):
                engine.docker("rmi", f"{tag.rpartition(':')[0]}:{newer}", check=False)


def test_a_backup_is_made_rehearsed_and_pruned(project):
    """By the lines of docs/backup.md, then a restore beside the live database, and a backup that goes."""
    def compose(*words: str) -> str:
        return project(*words, profiles=(*PROFILES, "backup"), timeout=300)

    (page,) = commands("backup.md", "platform/compose/tests/test_platform.py")
    said = "".join(compose(*shlex.split(line.removeprefix("docker compose "))) for line in page.splitlines())
    assert "nightly: whole" in said and " rows of ClickHouse" in said
    compose("run", "--rm", "backup", "restore", "nightly", "--only", "clickhouse", "--as", "rehearsal")
    assert project.number("SELECT count() FROM rehearsal.label") > 0
    project.sql("DROP DATABASE rehearsal SYNC")
    compose("run", "--rm", "backup", "create", "second")
    compose("run", "--rm", "backup", "prune", "--keep", "1")
    assert project("exec", "-T", "clickhouse", "ls", "/var/lib/clickhouse/backups").split() == ["second"]
    assert "nightly" not in compose("run", "--rm", "backup", "list")


def held_bytes(pid: int) -> int:
    """Memory of a process's control group that cannot be dropped: without the page cache, with tmpfs and shared memory.
    """
    groups = dict(line.strip().split(":", 2)[1:] for line in open(f"/proc/{pid}/cgroup"))
    folder, fields = (f"/sys/fs/cgroup/memory{groups['memory']}",
                      ("total_rss", "total_shmem")) if "memory" in groups else (f"/sys/fs/cgroup{groups['']}",
                                                                                ("anon", "shmem"))
    told = dict(line.split() for line in open(f"{folder}/memory.stat"))
    return sum(int(told[field]) for field in fields)


def test_memory_at_idle(project):
    """All services, no access point: what the engine's control groups count, without the page cache."""
    project("stop", "exporter")
    project.until("nothing is on its way", lambda:
                  (a := project.number(ROWS)) and not time.sleep(3) and project.number(ROWS) == a)
    used = {}
    for name, container in project.containers().items():
        if container["State"]["Running"]:
            used[name] = held_bytes(container["State"]["Pid"]) / MIB
    total = sum(used.values())
    for name, mib in sorted(used.items(), key=lambda item: -item[1]):
        print(f"\n  {name:<12} {mib:7.0f} MiB", end="")
    print(f"\n  all          {total:7.0f} MiB")
    record(
        "compose-idle-memory", round(total), "MiB",
        "no access point; control groups without the page cache: " + ", ".join(f"{name} {mib:.0f}"
                                                                               for name, mib in sorted(used.items())))
    assert total <= 4096


def test_down_leaves_nothing(project):
    project("down", "-v", "--remove-orphans", "-t", "20", timeout=300)
    for what in ("container", "volume", "network"):
        assert run("docker", what, "ls", "-q", *(["-a"] if what == "container" else []), "--filter",
                   f"label=com.docker.compose.project={project.name}").stdout.strip() == "", what
