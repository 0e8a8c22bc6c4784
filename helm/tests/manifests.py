"""Looking into rendered objects."""
from pathlib import Path

CHART = Path(__file__).resolve().parents[1] / "oal"
#: Every set of values that the tests render; () is the default.
EXAMPLES = [(), *((path.stem,) for path in sorted((CHART / "examples").glob("*.yaml")))]
WORKLOADS = ("Deployment", "StatefulSet", "Job", "CronJob", "DaemonSet")


def name(o: dict) -> str:
    return f"{o['kind']}/{o['metadata']['name']}"


def workloads(objects) -> list[dict]:
    return [o for o in objects if o["kind"] in WORKLOADS]


def template(workload: dict) -> dict:
    spec = workload["spec"]
    return (spec["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else spec)["template"]


def pod(workload: dict) -> dict:
    return template(workload)["spec"]


def labels(workload: dict) -> dict:
    return template(workload)["metadata"]["labels"]


def containers(workload: dict) -> list[dict]:
    return pod(workload)["containers"] + pod(workload).get("initContainers", [])


def component(workload: dict) -> str:
    return labels(workload)["app.kubernetes.io/component"]


def find(objects, kind: str, object_name: str) -> dict:
    return next(o for o in objects if o["kind"] == kind and o["metadata"]["name"] == object_name)


def mounted_secrets(workload: dict) -> dict[str, set[str]]:
    """Secret → keys that the pod's volumes take from it."""
    found: dict[str, set[str]] = {}
    for volume in pod(workload).get("volumes", []):
        for source in volume.get("projected", {}).get("sources", []):
            if "secret" in source:
                found.setdefault(source["secret"]["name"],
                                 set()).update(item["key"] for item in source["secret"]["items"])
    return found


def selects(selector: dict, wanted: dict) -> bool:
    return selector.get("matchLabels", {}).items() <= wanted.items()


def allowed(policies, source: dict, target: dict, port: int) -> bool:
    """Do NetworkPolicies let a pod with labels SOURCE reach one with labels TARGET at PORT? As Kubernetes says: each
    side must be allowed by some policy that selects it."""
    def matches(rule: dict, side: str, other: dict) -> bool:
        ports = rule.get("ports")
        if ports and port not in [p["port"] for p in ports]:
            return False
        peers = rule.get(side)
        return not peers or any("podSelector" in peer and selects(peer["podSelector"], other) for peer in peers)

    out = any(
        matches(rule, "to", target) for p in policies if selects(p["spec"]["podSelector"], source)
        for rule in p["spec"].get("egress") or [])
    into = any(
        matches(rule, "from", source) for p in policies if selects(p["spec"]["podSelector"], target)
        for rule in p["spec"].get("ingress") or [])
    return out and into
