"""tls.enabled: what connects to what by TLS, and that each certificate has the names by which its server is asked."""
import json
import re

import pytest
from manifests import component, containers, find, mounted_secrets, name, workloads

SHARDS = "clickhouse-cluster"
OFF = "tls.enabled=false"
#: Port → whose certificate is shown there.
SHOWN = {8123: "clickhouse", 9000: "clickhouse", 9181: "clickhouse", 9234: "clickhouse", 5000: "mlflow",
         5001: "model-registry", 5002: "trainer", 8080: "deploy", 8778: "jolokia", 5432: "postgres",
         8445: "deploy", 8081: "flink-rest"}
#: Spoken by TLS whatever the values say.
ALWAYS = {8445, 8081}
NOT_OURS = re.compile(
    "-(migrate|secrets|dashboard-.*|grafana-alerting|grafana|policies|topics|jolokia|clickhouse-users)$")


def texts(objects):
    """What a part is told, from where: configurations, environments, arguments."""
    for o in objects:
        if o["kind"] == "ConfigMap" and not NOT_OURS.search(o["metadata"]["name"]):
            yield from ((f"{name(o)} {key}", text) for key, text in o["data"].items())
    for w in workloads(objects):
        for c in containers(w):
            yield name(w), "\n".join([e.get("value") or "" for e in c.get("env", [])] + c.get("args", []))


def addresses(objects) -> set[tuple[str, str, int]]:
    """Scheme, host and port of every part of this installation that another is told of."""
    return {(scheme, host, int(port)) for _, text in texts(objects)
            for scheme, host, port in re.findall(r"\b(https?)://(oal-[a-z0-9.-]+):(\d+)", text)}


def certificates(objects) -> dict[str, set[str]]:
    """Name → hosts, as oal-ca is told."""
    job = next(w for w in workloads(objects) if component(w) == "secrets")
    return {service: set(hosts.split(",")) for service, hosts in
            re.findall(r"--hosts=([a-z-]+)=(\S+)", "\n".join(containers(job)[0]["args"]))}


@pytest.mark.parametrize("values", [(), ("fleet",), (SHARDS,), ("push.replicas=3", "trainer.replicas=2"),
                                    ("flink.taskManager.replicas=2", "backup.enabled=true",
                                     "clickhouse.backup.enabled=true", "push.store=file")], ids=str)
def test_every_part_is_asked_by_tls_under_a_name_of_its_certificate(chart, values):
    objects = chart.objects(*values)
    found, names = addresses(objects), certificates(objects)
    assert {port for _, _, port in found} >= {8123, 5000, 5001, 5002, 8080, 8778}
    for scheme, host, port in found:
        if host == "oal-grafana":  # its page is people's: README
            continue
        assert scheme == "https" and host in names[SHOWN[port]], (scheme, host, port)
    for where, text in texts(objects):
        for host, port in re.findall(r"<host(?:name)?>(oal-[^<]*)</host(?:name)?><port>(\d+)</port>", text):
            assert host in names[SHOWN[int(port)]] and ("<secure>" in text), (where, host)
        for line in text.splitlines():
            if "oal-postgres" in line and "--hosts=" not in line:
                assert "sslmode=verify-full" in line and "sslrootcert=/run/secrets/oal/pki/ca.crt" in line, where
    assert "oal-postgres" in names["postgres"]


def test_whoever_asks_by_tls_has_the_authority_and_whoever_is_asked_its_certificate(chart):
    objects = chart.objects("backup.enabled=true", "clickhouse.backup.enabled=true")
    for w in workloads(objects):
        mounts = mounted_secrets(w)
        if "https://oal-" in json.dumps(w) or component(w) in ("push", "registry", "trainer", "mlflow", "grafana",
                                                               "telegraf", "backup", "migrate", "flink-taskmanager"):
            assert any("ca.crt" in keys for keys in mounts.values()), name(w)
    for part, own in {"clickhouse": "clickhouse", "postgres": "postgres", "mlflow": "mlflow", "kafka": "jolokia",
                      "flink-jobmanager": "jolokia", "flink-taskmanager": "jolokia"}.items():
        keys = next(mounted_secrets(w) for w in workloads(objects) if component(w) == part)[f"oal-tls-{own}"]
        assert {"tls.crt", "tls.key"} <= keys, part


def test_probes_ask_as_the_port_speaks(chart):
    for values, scheme in (((), "HTTPS"), ((OFF,), None)):
        asked = {component(w): c[probe]["httpGet"].get("scheme") for w in workloads(chart.objects(*values))
                 for c in containers(w) for probe in ("startupProbe", "readinessProbe")
                 if "httpGet" in c.get(probe, {})}
        assert asked == {part: scheme if part != "grafana" else None for part in
                         ("clickhouse", "mlflow", "registry", "trainer", "push", "grafana")}


def test_switched_off_everything_is_plain_and_nobody_holds_a_certificate_for_it(chart):
    objects = chart.objects(OFF)
    assert {scheme for scheme, _, port in addresses(objects) if port not in ALWAYS} == {"http"}
    held = {secret for w in workloads(objects) for secret in mounted_secrets(w)}
    assert not held & {f"oal-tls-{own}" for own in ("clickhouse", "postgres", "mlflow", "jolokia")}
    assert "sslmode=disable" in find(objects, "ConfigMap", "oal-push")["data"]["dsn"]
    for line in find(objects, "ConfigMap", "oal-postgres")["data"]["pg_hba.conf"].splitlines():
        assert not line.startswith("hostssl")


def test_parts_elsewhere_are_believed_by_the_public_authorities(chart):
    objects = chart.objects("clickhouse-operator", "postgres-external")
    for where, text in texts(objects):
        if "clickhouse.example.org" in text:
            for line in text.splitlines():
                assert not re.search(r"clickhouse.ca.file|sslrootcert", line), where
    telegraf = next(w for w in workloads(objects) if component(w) == "telegraf")
    env = {e["name"]: e["value"] for e in containers(telegraf)[0]["env"]}
    assert env["OAL_CLICKHOUSE_CA_FILE"] == "" and env["OAL_CA_FILE"].endswith("ca.crt")


def test_cert_manager_issues_servers_that_are_no_clients_of_kafka(chart):
    made = {o["metadata"]["name"].removeprefix("oal-tls-"): o["spec"] for o in chart.objects("cert-manager")
            if o["kind"] == "Certificate" and "-tls-" in o["metadata"]["name"]}
    for own in ("clickhouse", "postgres", "mlflow", "jolokia"):
        assert "server auth" in made[own]["usages"] and "client auth" not in made[own]["usages"], own
    assert made["jolokia"]["privateKey"]["algorithm"] == "RSA" and "127.0.0.1" in made["deploy"]["ipAddresses"]
    assert {"server auth", "client auth"} <= set(made["model-registry"]["usages"])
