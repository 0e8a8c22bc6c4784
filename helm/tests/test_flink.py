"""What Flink's pods are given; that an upgrade is in force in the running job, shows helm/cluster/real."""
import pytest
from conftest import ROOT
from manifests import EXAMPLES, component, find, mounted_secrets, pod, workloads

WITH_FLINK = [v for v in EXAMPLES if v != ("flink-operator",)]


@pytest.fixture(params=WITH_FLINK, ids=lambda v: "+".join(v) or "default")
def objects(request, chart):
    return chart.objects(*request.param)


def container(objects, role: str) -> dict:
    return pod(next(w for w in workloads(objects) if component(w) == f"flink-{role}"))["containers"][0]


def test_the_jobmanager_is_ready_when_every_task_runs(objects):
    """By the program that the image has for it, and with the certificate that Flink's page wants."""
    its = container(objects, "jobmanager")
    assert its["readinessProbe"]["exec"]["command"] == ["oal-flink-health"]
    given = {e["name"]: e.get("value") for e in its["env"]}
    program = (ROOT / "platform" / "images" / "stream-jobs" / "oal-flink-health").read_text()
    options = {"OAL_FLINK_REST", "OAL_FLINK_AT", "OAL_FLINK_CLIENT", "OAL_FLINK_CA", "OAL_FLINK_TASKS"}
    assert options <= given.keys() and all(option in program for option in options)
    assert given["OAL_FLINK_TASKS"] == "1" and given["OAL_FLINK_REST"] == "https://oal-flink:8081"
    for role, expected in (("jobmanager", {"operator.crt", "operator.key"}), ("taskmanager", set())):
        workload = next(w for w in workloads(objects) if component(w) == f"flink-{role}")
        keys = next(keys for secret, keys in mounted_secrets(workload).items() if secret.endswith("-flink"))
        assert keys & {"operator.crt", "operator.key"} == expected, role


def test_flinks_page_can_be_reached_while_the_job_does_not_run(objects):
    assert find(objects, "Service", "oal-flink")["spec"]["publishNotReadyAddresses"] is True


def test_the_plan_of_the_last_start_is_forgotten_before_the_jobmanager_starts_and_by_it_alone(objects):
    start = find(objects, "ConfigMap", "oal-flink")["data"]["start.sh"]
    line = next(line for line in start.splitlines() if "plan.sh" in line)
    assert line.startswith('if [ "$1" = jobmanager ]; then bash /etc/oal/flink/plan.sh; exec oal-flink jobmanager')
    assert start.startswith("#") and "set -euo pipefail" in start  # where plan.sh fails, nothing starts
