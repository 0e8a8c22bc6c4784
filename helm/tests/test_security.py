"""What holds of every pod, with every example."""
import configparser
import json
import re

import pytest
from manifests import EXAMPLES, allowed, component, containers, find, labels, mounted_secrets, name, pod, workloads

everywhere = pytest.mark.parametrize("values", EXAMPLES, ids=lambda v: "+".join(v) or "default")


@everywhere
def test_every_pod_runs_under_the_restricted_standard(chart, values):
    for w in workloads(chart.objects(*values)):
        if component(w) == "host-agent":
            continue  # what holds of it instead: test_host_agent.py
        security = pod(w)["securityContext"]
        assert security["runAsNonRoot"] is True and security["runAsUser"] > 0 and security["seccompProfile"] == {
            "type": "RuntimeDefault"
        }, name(w)
        for c in containers(w):
            assert c["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
            }, (name(w), c["name"])
        assert not any("hostPath" in v for v in pod(w).get("volumes", [])), name(w)
        assert not any(pod(w).get(key) for key in ("hostNetwork", "hostPID", "hostIPC")), name(w)


@everywhere
def test_every_container_says_what_it_needs_and_its_image_is_pinned(chart, values):
    for w in workloads(chart.objects(*values)):
        for c in containers(w):
            assert c["resources"]["limits"]["memory"] and c["resources"]["requests"].keys() == {"cpu", "memory"
                                                                                                }, (name(w), c["name"])
            assert re.search(r":[^:/]*\d[^:/]*$|@sha256:",
                             c["image"]) and not c["image"].endswith(":latest"), (name(w), c["image"])


@everywhere
def test_every_serving_container_has_probes_and_whoever_listens_is_asked_whether_it_lives(chart, values):
    for w in workloads(chart.objects(*values)):
        if w["kind"] in ("Job", "CronJob"):
            continue
        for c in pod(w)["containers"]:
            assert "readinessProbe" in c, name(w)
            if c.get("ports"):
                assert "livenessProbe" in c and "startupProbe" in c, name(w)
                names = {p["name"] for p in c["ports"]}
                for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
                    for how in ("httpGet", "tcpSocket"):
                        assert c[probe].get(how, {}).get("port", next(iter(names))) in names, (name(w), probe)


@everywhere
def test_no_secret_is_in_an_environment_a_configuration_or_an_argument(chart, values):
    objects = chart.objects(*values)
    assert not [name(o) for o in objects if o["kind"] == "Secret"]
    for w in workloads(objects):
        for c in containers(w):
            assert "envFrom" not in c and not any("secretKeyRef" in e.get("valueFrom", {})
                                                  for e in c.get("env", [])), name(w)
            for e in c.get("env", []):
                # The provider's address for tokens is none.
                if re.search("PASSWORD|SECRET|TOKEN(?!_URL)", e["name"]):
                    assert re.match(r"/run/secrets/|\$__file\{/run/secrets/", e["value"]), (name(w), e)
    # A password in a configuration is a path, a hash taken from the environment, or filled in at the start from a file.
    fine = re.compile(
        r"/run/secrets/|\$__file|from_env|\$password|\$\(|PASSWORD"
        r" :'password'|\$secrets|_PASSWORD_SHA256|flink-\$store|# "
    )
    for o in objects:
        # Migrations, dashboards and our own program hold no values of this installation.
        if o["kind"] == "ConfigMap" and not re.search("-(migrate|secrets|clickhouse-users|dashboard-.*)$",
                                                      o["metadata"]["name"]):
            for key, text in o["data"].items():
                for line in text.splitlines():
                    assert not re.search(r"(?i)(password|secret|token)\w*[\"']?\s*[:=]", line) or fine.search(line), (
                        name(o), key, line)


@everywhere
def test_only_flink_and_the_maker_of_secrets_hold_a_token_of_the_api_server(chart, values):
    objects = chart.objects(*values)
    holders = {component(w) for w in workloads(objects) if pod(w)["automountServiceAccountToken"]}
    assert holders <= {"flink-jobmanager", "flink-taskmanager", "secrets"}
    for account in (o for o in objects if o["kind"] == "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False
    assert not [name(o) for o in objects if o["kind"].startswith("ClusterRole")]
    for role in (o for o in objects if o["kind"] == "Role"):
        for rule in role["rules"]:
            assert "*" not in rule["verbs"] + rule["resources"]
            if "secrets" in rule["resources"]:
                assert rule["verbs"] == ["create"] or rule.get("resourceNames"), name(role)


@everywhere
def test_a_pod_sees_no_key_but_its_own(chart, values):
    for w in workloads(chart.objects(*values)):
        certificates = {
            s.split("-tls-", 1)[1] for s, keys in mounted_secrets(w).items() if "-tls-" in s and keys != {"ca.crt"}
        }
        own = {
            "kafka": {"broker", "jolokia"}, "flink-jobmanager": {"stream-jobs", "jolokia"},
            "flink-taskmanager": {"stream-jobs", "jolokia"}, "clickhouse": {"clickhouse"},
            "clickhouse-keeper": {"clickhouse"}, "postgres": {"postgres"}, "mlflow": {"mlflow"},
            "trainer": {"trainer"}, "registry": {"model-registry"}, "push": {"deploy"}, "topics": {"admin"},
            "transactions": {"transactions"},
            # that of whom it asks by, where there is a Kafka of ours to ask
            "test": {"transactions"} & certificates
        }
        assert certificates == own.get(component(w), set()), name(w)
        for secret, keys in mounted_secrets(w).items():
            assert not secret.endswith("-state"), name(w)
            if "clickhouse-admin.password" in keys:
                assert component(w) in ("clickhouse", "migrate", "backup")
            if {"sign-registry.pem", "sign-online.pem"} & keys:
                assert component(w) in ("registry", "trainer")
            if secret.endswith("-ap-ca"):
                assert component(w) == "push"


@everywhere
def test_every_pod_has_a_network_policy_and_nothing_is_open_by_default(chart, values):
    objects = chart.objects(*values)
    policies = [o for o in objects if o["kind"] == "NetworkPolicy"]
    deny = find(objects, "NetworkPolicy", "oal-default-deny")["spec"]
    assert deny["policyTypes"] == ["Ingress", "Egress"] and "ingress" not in deny
    assert [p["port"] for rule in deny["egress"] for p in rule["ports"]] == [53, 53]
    for w in workloads(objects):
        assert deny["podSelector"]["matchLabels"].items() <= labels(w).items(), name(w)
        own = any(p["spec"]["podSelector"]["matchLabels"].get("app.kubernetes.io/component") == component(w)
                  for p in policies)
        assert own != (component(w) == "backup-volume"), f"{name(w)}: it alone connects to nobody"


def test_network_policies_let_through_what_the_configuration_connects_and_no_more(chart):
    objects = chart.objects()
    policies = [o for o in objects if o["kind"] == "NetworkPolicy"]
    of = {component(w): labels(w) for w in workloads(objects)}

    def reaches(source, target, port):
        return allowed(policies, of[source], of[target], port)
    for source in ("flink-taskmanager", "trainer", "registry", "push", "topics", "transactions", "kafka"):
        assert reaches(source, "kafka", 9093), source
    for source in ("flink-taskmanager", "push", "registry", "grafana", "telegraf", "migrate"):
        assert reaches(source, "clickhouse", 8123), source
    assert reaches("flink-taskmanager", "flink-jobmanager", 6123) and reaches("mlflow", "postgres", 5432) and reaches(
        "telegraf", "push", 8080)
    for source, target, port in (("grafana", "kafka", 9093), ("trainer", "clickhouse", 8123),
                                 ("grafana", "postgres", 5432), ("push", "mlflow", 5000),
                                 ("topics", "clickhouse", 8123), ("push", "flink-jobmanager", 8081),
                                 ("trainer", "kafka", 9094), ("grafana", "clickhouse", 9000)):
        assert not reaches(source, target, port), (source, target)


def test_mlflow_calls_nobody_but_the_registry_and_its_database(chart):
    """Its webhooks may go to private addresses, since the registry's is one: the policy says to which."""
    policies = [o for o in chart.objects() if o["kind"] == "NetworkPolicy"
                and o["spec"]["podSelector"]["matchLabels"].get("app.kubernetes.io/component") == "mlflow"]
    out = [(peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"], port["port"])
           for p in policies for rule in p["spec"].get("egress", []) for peer in rule["to"] for port in rule["ports"]]
    assert sorted(out) == [("postgres", 5432), ("registry", 5001)]


def test_access_points_come_in_from_their_networks_only(chart):
    policy = find(chart.objects("fleet"), "NetworkPolicy", "oal-push")
    rules = [(rule["ports"][0]["port"], rule["from"]) for rule in policy["spec"]["ingress"]]
    # Telegraf too, which looks when the certificate ends.
    assert sorted(port for port, peers in rules if peers == [{"ipBlock": {"cidr": "10.0.0.0/8"}}]) == [8443, 8445]
    assert "ipBlock" not in json.dumps([peers for port, peers in rules if port == 8080])


def test_grafana_lets_nobody_in_without_a_login(chart):
    ini = configparser.ConfigParser(interpolation=None)
    ini.read_string(find(chart.objects(), "ConfigMap", "oal-grafana")["data"]["grafana.ini"])
    assert ini["auth.anonymous"]["enabled"] == "false" and ini["users"]["allow_sign_up"] == "false"
    for key in ("admin_password", "secret_key"):
        assert ini["security"][key].startswith("$__file{/run/secrets/oal/secrets/")
