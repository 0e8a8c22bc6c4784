"""What the chart makes of other projects' kinds, by their own words: the CRDs of Gateway API, the Prometheus operator
and cert-manager; promtool for what a Prometheus is told."""
import json
import subprocess

import custom_kinds
import pytest
import yaml
from custom_kinds import KINDS
from manifests import find

VALUES = ("cert-manager", "monitoring.enabled=true", "monitoring.labels.release=prometheus", "backup.enabled=true",
          "clickhouse.backup.enabled=true", "pages.gateway.enabled=true", "pages.gateway.parentRefs[0].name=public",
          "pages.grafana=g.example.org", "push.tlsRoute.enabled=true", "push.tlsRoute.parentRefs[0].name=public",
          "push.tlsRoute.host=push.example.org", "push.tlsRoute.enrolHost=enrol.example.org",
          "push.enrol.url=https://enrol.example.org",
          "push.access.hosts={push.example.org,enrol.example.org,192.0.2.7}")
AWAY = 'up{namespace="wifi", job="oal-clickhouse"}'


def test_objects_of_other_projects_are_as_their_crds_say(chart, tools, tmp_path):
    folder = custom_kinds.write(tmp_path / "schemas")
    objects = [o for o in chart.objects(*VALUES) if o["kind"] in KINDS]
    assert {o["kind"] for o in objects} == KINDS
    command = [tools / "kubeconform", "-strict", "-schema-location",
               str(folder / "{{.ResourceKind}}{{.KindSuffix}}.json")]

    def check(which):
        return subprocess.run(command, input=yaml.safe_dump_all(which), capture_output=True, text=True)
    done = check(objects)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = json.loads(json.dumps(find(objects, "ServiceMonitor", "oal-push")))
    wrong["spec"]["endpoints"][0]["bearerToken"] = "x"
    assert "bearerToken" in check([wrong]).stdout, "the schemas would take anything"


@pytest.fixture(scope="module")
def rules(chart, tmp_path_factory):
    file = tmp_path_factory.mktemp("rules") / "rules.yaml"
    file.write_text(yaml.safe_dump(find(chart.objects(*VALUES), "PrometheusRule", "oal")["spec"]))
    return file


def promtool(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)


def test_prometheus_takes_every_alert_and_each_says_what_to_do(rules):
    done = promtool("check", "rules", rules)
    assert done.returncode == 0 and "8 rules found" in done.stdout, done.stdout + done.stderr
    for rule in yaml.safe_load(rules.read_text())["groups"][0]["rules"]:
        assert rule["annotations"]["summary"] and rule["annotations"]["description"] and rule["labels"]["severity"]


def fires(rules, alert: str, series: dict[str, str], minutes: int) -> bool:
    """Does ALERT fire after so many minutes of SERIES (selector → promtool's notation)?"""
    content = {
        "rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [{
            "interval": "1m", "input_series": [{"series": s, "values": v} for s, v in series.items()],
            "alert_rule_test": [{"eval_time": f"{minutes}m", "alertname": alert, "exp_alerts": []}]
        }]
    }
    file = rules.parent / "test.yaml"
    file.write_text(yaml.safe_dump(content))
    done = promtool("test", "rules", file)
    assert done.returncode == 0 or f"alertname: {alert}" in done.stdout + done.stderr, done.stdout + done.stderr
    return done.returncode != 0


def test_something_outside_clickhouse_says_when_clickhouse_is_away(rules):
    up = AWAY.replace(", ", ",")
    assert fires(rules, "OalClickHouseAway", {up: "1x10 0x10"}, 15)
    assert fires(rules, "OalClickHouseAway", {'up{namespace="other",job="x"}': "1x20"}, 15), "no target at all"
    assert not fires(rules, "OalClickHouseAway", {up: "1x20"}, 15)
    assert not fires(rules, "OalClickHouseAway", {up: "1x10 0 1x10"}, 15), "one missed scrape is no outage"


@pytest.mark.parametrize("alert, series, minutes", [
    ("OalClickHouseTakesNoRows",
     {'ClickHouseProfileEvents_InsertedRows{namespace="wifi",job="oal-clickhouse"}': "0+100x10 1000x30"}, 40),
    ("OalVolumeFull", {
        'kubelet_volume_stats_available_bytes{namespace="wifi",persistentvolumeclaim="data-oal-kafka-0"}': "9x30",
        'kubelet_volume_stats_capacity_bytes{namespace="wifi",persistentvolumeclaim="data-oal-kafka-0"}': "100x30"},
     20),
    ("OalPodsAreNotReady", {
        'kube_statefulset_replicas{namespace="wifi",statefulset="oal-kafka"}': "3x30",
        'kube_statefulset_status_replicas_ready{namespace="wifi",statefulset="oal-kafka"}': "2x30"}, 25),
    ("OalBackupIsOld",
     {'kube_cronjob_status_last_successful_time{namespace="wifi",cronjob="oal-backup"}': "0x4000"}, 2200),
    ("OalPartAway", {'up{namespace="wifi",job="oal-push",pod="oal-push-0"}': "0x20"}, 10),
])
def test_an_alert_fires_for_what_it_names(rules, alert, series, minutes):
    assert fires(rules, alert, series, minutes)
    assert not fires(rules, alert, {s.replace('"wifi"', '"other"'): v for s, v in series.items()}, minutes)


def test_prometheus_is_let_in_to_what_it_is_told_to_read(chart):
    objects = chart.objects("monitoring.enabled=true",
                            "networkPolicy.monitoring[0].namespaceSelector.matchLabels.name=monitoring")
    for part, port in (("clickhouse", 9363), ("push", 8080), ("trainer", 5002), ("registry", 5001)):
        rules = find(objects, "NetworkPolicy", f"oal-{part}")["spec"]["ingress"]
        assert [rule["ports"][0]["port"] for rule in rules
                if rule.get("from") == [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]] == [port]
        monitor = find(objects, "ServiceMonitor", f"oal-{part}")["spec"]
        services = [o for o in objects if o["kind"] == "Service"
                    and monitor["selector"]["matchLabels"].items() <= o["metadata"]["labels"].items()]
        [service] = services
        assert monitor["endpoints"][0]["port"] in {p["name"] for p in service["spec"]["ports"]}, part
