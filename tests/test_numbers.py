"""Ports, memory and versions that a document says are those of what it is about: one number everywhere.

Starts nothing.
"""

from __future__ import annotations

import re

import pytest
import yaml
from pages import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
UNITS = {"m": 1 / 1024, "g": 1}


def text(name: str) -> str:
    """Without line breaks, so that a sentence is found wherever it is broken."""
    return re.sub(r"\s+", " ", (ROOT / name).read_text())


def found(name: str, pattern: str) -> list:
    said = re.findall(pattern, text(name))
    assert said, f"{name} no longer says {pattern}: change this test with it"
    return said


def tags() -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=\"?([^\"\n]*)\"?$", (ROOT / "platform/images/tags.env").read_text(), re.M))


# Memory


def lasting_gib() -> float:
    """What all services of Compose that last may take, GiB."""
    limits = [re.fullmatch(r"(\d+)([mg])", s["mem_limit"]).groups() for s in COMPOSE.values() if s["restart"] != "no"]
    return sum(int(number) * UNITS[unit] for number, unit in limits)


@pytest.mark.parametrize(("name", "pattern"), [
    ("docs/install-host.md", r"services may take ([\d.]+) GiB together"),
    ("platform/compose/README.md", r"Nothing that lasts may take more than ([\d.]+) GiB together")])
def test_the_limits_of_compose_are_what_documents_say(name, pattern):
    assert {float(said) for said in found(name, pattern)} == {round(lasting_gib(), 1)}


def test_a_host_for_compose_has_room_for_its_limits_and_the_system():
    (asked,) = found("docs/install-host.md", r"Compose 2\.24 or later, 4 cores, (\d+) GiB of memory")
    assert int(asked) >= lasting_gib() + 2


def test_the_small_node_is_one_size():
    sizes = {found(name, pattern)[0] for name, pattern in (
        ("docs/install-cluster.md", r"one node with (4 cores and \d+ GiB)"),
        ("helm/oal/examples/small.yaml", r"# One node of (4 cores and \d+ GiB)"),
        ("helm/oal/values.yaml", r"one # node of (4 cores and \d+ GiB)"))}
    assert len(sizes) == 1, sizes


def test_the_machine_for_the_local_platform_is_one_size():
    assert len({found(name, r"2 cores, (\d+ GB)")[0] for name in ("README.md", "docs/install-host.md")}) == 1


# Ports


def test_node_ports_are_those_of_the_example():
    small = yaml.safe_load((ROOT / "helm/oal/examples/small.yaml").read_text())
    values = yaml.safe_load((ROOT / "helm/oal/values.yaml").read_text())
    kafka, push = (values[part]["access"]["nodePort"] for part in ("kafka", "push"))
    assert small["push"]["enrol"]["url"].endswith(f":{push + 1}")
    for name in ("docs/install-cluster.md", "docs/access-point.md"):
        said = {int(number) for number in re.findall(r"\b30\d{3}\b", text(name))}
        assert said == {kafka, push, push + 1}, name
    pod = (ROOT / "helm/access-point.yaml").read_text()
    assert {int(number) for number in re.findall(r"example\.org:(\d+)", pod)} == {kafka, push}


def published(service: str) -> set[int]:
    return {int(str(port).split(":")[-1]) for port in COMPOSE[service]["ports"]}


@pytest.mark.parametrize("name", ["docs/access-point.md", "docs/troubleshoot.md"])
def test_kafkas_ports_for_access_points(name):
    ours = (ROOT / "helm/oal/values.yaml").read_text()
    for host, cluster in found(name, r"(\d{4}) on one host[;,] (\d{4}) on a cluster"):
        assert int(host) in published("kafka")
        assert f"port {cluster}) or NodePort" in ours


def test_ports_of_the_push_service():
    assert {8443, 8445} <= published("push")
    assert found("docs/access-point.md", r"push service \(8443, and 8445 once, to enrol\)")


# Versions: the table of docs/support.md


def row(part: str) -> str:
    (line,) = [line for line in (ROOT / "docs/support.md").read_text().splitlines() if line.startswith(f"| {part} |")]
    return line


def version(file: str, pattern: str) -> str:
    return re.search(pattern, (ROOT / file).read_text(), re.M)[1]


@pytest.mark.parametrize(("part", "file", "pattern"), [
    ("Kubernetes", "helm/tools/go.mod", r"k8s\.io/kubernetes v(\S+)"),
    ("Docker Compose", "platform/compose/tools/go.mod", r"docker/compose/v2 v(\S+)"),
    ("Kafka", "platform/kafka/pom.xml", r"kafka_2\.13</artifactId><version>([\d.]+)"),
    ("Flink", "stream-jobs/pom.xml", r"<flink\.version>([\d.]+)"),
    ("ClickHouse", "platform/local/requirements.txt", r"chdb-core==(\d+\.\d+)"),
    ("MLflow", "training/requirements.txt", r"^mlflow==(\S+)"),
    ("PostgreSQL", "platform/images/standin/postgres/Dockerfile", r"postgresql-(\d+)")])
def test_what_was_run_is_what_is_locked(part, file, pattern):
    assert re.search(rf"(?<![\d.]){re.escape(version(file, pattern))}(?![\d]|\.\d)", row(part).split("|")[3]), row(part)


@pytest.mark.parametrize(("part", "tag"), [("Kafka", "KAFKA_IMAGE"), ("ClickHouse", "CLICKHOUSE_IMAGE"),
                                           ("Grafana", "GRAFANA_IMAGE"), ("Grafana", "GRAFANA_PLUGINS"),
                                           ("Flink", "FLINK_IMAGE"), ("PostgreSQL", "POSTGRES_IMAGE")])
def test_what_is_supported_is_what_is_installed(part, tag):
    number = re.search(r"[: ](\d+(?:\.\d+)*)", tags()[tag])[1]
    number = number.split(".")[0] if part == "PostgreSQL" else number
    assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)", row(part).split("|")[2]), (number, row(part))


def test_the_oldest_kubernetes_is_the_charts():
    oldest = yaml.safe_load((ROOT / "helm/oal/Chart.yaml").read_text())["kubeVersion"]
    (said,) = re.findall(r">=(\d+\.\d+)", oldest)
    assert f"{said} and later" in row("Kubernetes")
    assert found("docs/install-cluster.md", rf"Kubernetes {said} or later")
    helm = re.search(r"(\d+\.\d+) and later", row("Helm"))[1]
    assert found("docs/install-cluster.md", rf"Helm {helm} or later")


def test_the_oldest_openwrt_is_one():
    oldest = re.search(r"(\d+\.\d+) and later", row("OpenWrt"))[1]
    assert found("docs/access-point.md", rf"OpenWrt {oldest} or later")
    assert found("ap-exporter/openwrt/README.md", rf"\({oldest} or later")
