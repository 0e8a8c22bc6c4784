"""NetworkPolicies against what the pods' own configuration connects to: whoever is named there can be reached, and
nobody else, with every example."""
import json
import re
from itertools import product

import pytest
from manifests import EXAMPLES, allowed, component, containers, labels, pod, workloads

ALL = ("s3", "pages", "monitoring.enabled=true", "backup.enabled=true", "clickhouse.backup.enabled=true",
       "clickhouse.shards=2", "clickhouse.replicas=2", "kafka.replicas=3", "push.replicas=2", "trainer.replicas=2",
       "flink.taskManager.replicas=2")
#: Connections that no file names: Flink's parts find each other by what the leader writes to the API server, replicas
#: of ClickHouse and Keeper by what they tell each other.
#: The registry tells MLflow at its start where its webhook is.
UNNAMED = {
    *product(("flink-jobmanager", "flink-taskmanager"), ("flink-jobmanager", "flink-taskmanager"),
             (6121, 6122, 6123, 6124)),
    ("clickhouse", "clickhouse", 9009), ("clickhouse-keeper", "clickhouse-keeper", 9234),
    ("mlflow", "registry", 5001)
}
#: As a URL has it, as libpq, as ClickHouse's XML, as an environment.
ADDRESSES = (r"\b(oal[a-z0-9.-]*):(\d+)\b", r"\bhost=(oal[a-z0-9.-]*) port=(\d+)\b",
             r"<host>(oal[a-z0-9.-]*)</host>\s*<port>(\d+)</port>",
             r'HOST", "value": "(oal[a-z0-9.-]*)"}, {"name": "\w+PORT", "value": "(\d+)"')


def services(objects) -> dict[str, tuple[str, dict[int, int | str]]]:
    """Name → the component that it leads to, and its ports' targets."""
    return {o["metadata"]["name"]: (o["spec"]["selector"]["app.kubernetes.io/component"],
                                    {p["port"]: p.get("targetPort", p["port"]) for p in o["spec"]["ports"]})
            for o in objects if o["kind"] == "Service"}


def listened(workload) -> dict[str, int]:
    """Port of each name of its containers."""
    return {p["name"]: p["containerPort"] for c in containers(workload) for p in c.get("ports", [])}


def said(objects, workload) -> str:
    """Everything that its containers are told: arguments, environment, files of ConfigMaps."""
    maps = {o["metadata"]["name"]: o["data"] for o in objects if o["kind"] == "ConfigMap"}
    words = [json.dumps([c.get("command"), c.get("args"), c.get("env")]) for c in containers(workload)]
    for volume in pod(workload).get("volumes", []):
        for source in (volume, *volume.get("projected", {}).get("sources", [])):
            if (name := source.get("configMap", {}).get("name")) in maps and "dashboard" not in name:
                words += maps[name].values()
    return "\n".join(words)


def named(objects, workload) -> set[tuple[str, int]]:
    """(component, port of its pods) that a pod is told to connect to."""
    found, known = set(), services(objects)
    parts = {component(w): w for w in workloads(objects)}
    text = said(objects, workload)
    for host, port in (pair for address in ADDRESSES for pair in re.findall(address, text)):
        # POD.SERVICE, SERVICE, SERVICE.NAMESPACE.svc
        service = next((word for word in host.split(".") if word in known), None)
        if service is None:
            continue
        target, ports = known[service]
        at = ports.get(int(port), int(port))  # by the pod's name every port is the pod's own
        found.add((target, listened(parts[target]).get(at, at) if isinstance(at, str) else at))
    return found


@pytest.mark.parametrize("values", [*EXAMPLES, ALL],
                         ids=lambda v: "everything" if v is ALL else "+".join(v) or "default")
def test_policies_let_through_what_configurations_name_and_nothing_else(chart, values):
    objects = chart.objects(*values)
    policies = [o for o in objects if o["kind"] == "NetworkPolicy"]
    parts = {component(w): w for w in workloads(objects)}
    wanted = {(source, *target) for source, w in parts.items() for target in named(objects, w) if target[0] != source}
    assert len(wanted) > 10
    ports = {port for _, _, port in wanted | UNNAMED} | {p for w in parts.values() for p in listened(w).values()}
    can = {(source, target, port) for source, target, port in product(parts, parts, ports)
           if allowed(policies, labels(parts[source]), labels(parts[target]), port)}
    assert wanted <= can, f"told to connect and not let through: {sorted(wanted - can)}"
    # What access points reach from anywhere may be reached by who may go out at that port.
    public = {(p["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"], port["port"]) for p in policies
              for rule in p["spec"].get("ingress") or [] if not rule.get("from") for port in rule["ports"]}
    more = {(source, target, port) for source, target, port in can - wanted - UNNAMED
            if (target, port) not in named(objects, parts[source]) | public}
    assert not more, f"let through, and nobody is told to connect: {sorted(more)}"
