"""What operators of clusters ask of a chart, and the points of a hard reading of this one."""
import json
import re
import subprocess
import sys

import pytest
import yaml
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
    template,
    workloads,
)

#: Every part whose values have podAnnotations and so on.
PARTS = ("kafka", "flink", "clickhouse", "postgres", "mlflow", "registry", "trainer", "push", "telegraf", "grafana",
         "backup", "setup")
BACKUP = ("backup.enabled=true", "clickhouse.backup.enabled=true")


def policies(objects) -> list[dict]:
    return [o for o in objects if o["kind"] == "NetworkPolicy"]


def of(objects) -> dict[str, dict]:
    return {component(w): w for w in workloads(objects)}


def test_flinks_pods_stay_where_their_one_volume_is_and_spread_when_it_can_be_shared(chart):
    flink = of(chart.objects("flink.taskManager.replicas=2"))
    for part in ("flink-jobmanager", "flink-taskmanager"):
        [term] = pod(flink[part])["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        [rule] = term["labelSelector"]["matchExpressions"]
        # Each matches itself, or the first of them would wait for ever.
        assert {"flink-jobmanager", "flink-taskmanager"} == set(rule["values"]) and rule["operator"] == "In"
    # One at a time would leave the second pod waiting for the first, which waits for the node.
    budget = find(chart.objects("flink.taskManager.replicas=2"), "PodDisruptionBudget", "oal-flink-taskmanager")
    assert budget["spec"]["maxUnavailable"] == "100%"
    shared = chart.objects("flink.taskManager.replicas=2",
                           "flink.checkpoints.pvc.accessModes={ReadWriteMany}")
    assert "affinity" not in pod(of(shared)["flink-taskmanager"])
    assert find(shared, "PodDisruptionBudget", "oal-flink-taskmanager")["spec"]["maxUnavailable"] == 1
    assert "accessModes" in chart.refusal("flink.checkpoints.pvc.accessModes={ReadWriteOncePod}")


def test_a_broker_writes_no_log_of_its_garbage_collector_into_a_small_tmp(chart):
    """By the variable that the official start script reads; unset it means -loggc."""
    [kafka] = pod(of(chart.objects())["kafka"])["containers"]
    env = {e["name"]: e.get("value") for e in kafka["env"]}
    assert env["EXTRA_ARGS"] == "-name kafkaServer"


def test_a_rollback_is_not_kept_out_by_a_pod_of_a_bad_image(chart):
    """With OrderedReady the controller waits for the bad pod to be ready before it makes the good one."""
    for values in EXAMPLES:
        for w in workloads(chart.objects(*values)):
            if w["kind"] == "StatefulSet":
                assert w["spec"]["podManagementPolicy"] == "Parallel", name(w)


def test_the_disk_alert_asks_for_what_the_charts_telegraf_reads(chart):
    """Of the machine it reads nothing, in a pod; of ClickHouse's own disks it does."""
    [telegraf] = pod(of(chart.objects())["telegraf"])["containers"]
    watched = {e["name"]: e.get("value") for e in telegraf["env"]}["OAL_WATCH"].split()
    assert "host" not in watched and "clickhouse" in watched
    read = (ROOT / "observe/telegraf/telegraf.d/clickhouse.conf").read_text()
    assert 'name_override = "clickhouse_disk"' in read
    rules = yaml.safe_load((ROOT / "observe/grafana/provisioning/alerting/rules.yaml").read_text())
    [rule] = [r for group in rules["groups"] for r in group["rules"] if r["uid"] == "oal-disk"]
    assert "v_platform_clickhouse_disk" in json.dumps(rule)


def test_telegraf_asks_a_clickhouse_elsewhere_by_https_and_the_public_authorities(chart):
    for values, ca in ((("clickhouse-operator",), ""), ((), "/run/secrets/oal/pki/ca.crt")):
        [telegraf] = pod(of(chart.objects(*values))["telegraf"])["containers"]
        asked = telegraf["readinessProbe"]["exec"]["command"]
        assert asked[:3] == ["env", f"OAL_CA_FILE={ca}", "oal-health"]
    assert asked[3] == "https://oal-clickhouse:8123/ping"


def test_a_grafana_elsewhere_may_query_clickhouse_and_has_alerts_and_data_source(chart):
    """The example's own words: the namespace that it names gets in, another does not."""
    objects = chart.objects("grafana-managed")
    [rule] = [rule for rule in find(objects, "NetworkPolicy", "oal-clickhouse")["spec"]["ingress"]
              if any("namespaceSelector" in peer for peer in rule["from"])]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8123}]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    alerts = find(objects, "ConfigMap", "oal-grafana-alerting")
    assert alerts["metadata"]["labels"]["grafana_alert"] == "1" and set(alerts["data"]) == {"rules.yaml"}
    assert alerts["data"]["rules.yaml"].rstrip() == (
        ROOT / "observe/grafana/provisioning/alerting/rules.yaml").read_text().rstrip()
    job = of(objects)["secrets"]
    assert "--fill=grafana-datasource=/etc/oal/secrets/oal.yaml" in containers(job)[0]["args"]
    sources = yaml.safe_load(find(objects, "ConfigMap", "oal-secrets")["data"]["oal.yaml"])["datasources"]
    assert {s["uid"] for s in sources} == {"oal-clickhouse", "oal-clickhouse-alerts"}
    for source in sources:
        assert source["isDefault"] is False, "a Grafana with another default data source would not start"
        assert source["jsonData"]["host"] == "oal-clickhouse.wifi.svc" and source["jsonData"]["port"] == 8123
        assert source["jsonData"]["secure"] is True and "$OAL" not in json.dumps(source)


def test_the_data_source_for_a_grafana_elsewhere_is_filled_with_what_it_cannot_read(chart, tmp_path):
    sys.path.insert(0, str(CHART / "files"))
    import publish_secrets
    file = tmp_path / "oal.yaml"
    file.write_text(find(chart.objects("grafana-managed"), "ConfigMap", "oal-secrets")["data"]["oal.yaml"])
    known = {"clickhouse-grafana.password": b'pass"word: #1\n', "ca.crt": b"-----BEGIN\nabc\n-----END\n"}
    for source in yaml.safe_load(publish_secrets.filled(file, known))["datasources"]:
        assert source["secureJsonData"] == {"password": 'pass"word: #1', "tlsCACert": "-----BEGIN\nabc\n-----END"}


def test_pods_of_the_flink_operator_are_let_through(chart):
    """Labelled as the example says."""
    objects = chart.objects("flink-operator")
    base = {"app.kubernetes.io/instance": "oal", "app.kubernetes.io/part-of": "oal"}
    manager, worker = ({**base, "app.kubernetes.io/component": f"flink-{role}"} for role in ("jobmanager",
                                                                                              "taskmanager"))
    parts = {part: labels(w) for part, w in of(objects).items()}
    for source, target, port in ((worker, parts["kafka"], 9093), (worker, parts["clickhouse"], 8123),
                                 (worker, manager, 6123), (manager, worker, 6122)):
        assert allowed(policies(objects), source, target, port), (source, target, port)
    assert not allowed(policies(chart.objects("flink.enabled=false")), worker, parts["kafka"], 9093)


def test_ports_of_dns_and_the_api_server_are_those_of_the_cluster(chart):
    objects = chart.objects("networkPolicy.dnsPorts={53,5353}", "networkPolicy.apiPorts={16443}")
    deny = find(objects, "NetworkPolicy", "oal-default-deny")["spec"]
    assert {(p["protocol"], p["port"]) for p in deny["egress"][0]["ports"]} == {
        (protocol, port) for protocol in ("UDP", "TCP") for port in (53, 5353)}
    out = find(objects, "NetworkPolicy", "oal-secrets")["spec"]["egress"]
    assert [p["port"] for rule in out for p in rule["ports"]] == [16443]


def test_a_node_port_leads_to_the_broker_wherever_it_runs_and_each_broker_has_its_own_annotations(chart):
    for part in ("oal-kafka-0", "oal-push"):
        assert find(chart.objects("small"), "Service", part)["spec"]["externalTrafficPolicy"] == "Cluster"
        assert find(chart.objects("fleet"), "Service", part)["spec"]["externalTrafficPolicy"] == "Local"
    objects = chart.objects("fleet", "kafka.access.annotations.a=all", "kafka.access.brokers[0].annotations.a=one",
                            "kafka.access.brokers[1].loadBalancerIP=192.0.2.11")
    services = [find(objects, "Service", f"oal-kafka-{i}") for i in range(3)]
    assert [s["metadata"]["annotations"]["a"] for s in services] == ["one", "all", "all"]
    assert [s["spec"].get("loadBalancerIP") for s in services] == [None, "192.0.2.11", None]


def test_the_address_in_a_ticket_is_one_that_the_certificate_has(chart):
    def url(*values):
        return yaml.safe_load(find(chart.objects(*values), "ConfigMap", "oal-push")["data"]["deploy.yaml"])[
            "enrol"]["url"]
    assert url() == "https://oal-push.wifi.svc:8445"
    assert url("small") == "https://oal.example.org:30444"
    assert "push.enrol.url" in chart.refusal("push.access.type=LoadBalancer", "push.access.hosts={a.example}")
    assert "add it to push.access.hosts" in chart.refusal("push.enrol.url=https://other.example:8445")


def test_addresses_go_into_a_certificate_of_cert_manager_as_addresses(chart):
    specs = {o["metadata"]["name"]: o["spec"] for o in chart.objects(
        "cert-manager", "push.access.hosts={push.example.org,192.0.2.7,2001:db8::7}", "kafka.access.type=NodePort",
        "kafka.access.hosts={192.0.2.8}") if o["kind"] == "Certificate"}
    deploy, broker = specs["oal-tls-deploy"], specs["oal-tls-broker"]
    assert set(deploy["ipAddresses"]) == {"127.0.0.1", "192.0.2.7", "2001:db8::7"}
    assert "push.example.org" in deploy["dnsNames"] and not [n for n in deploy["dnsNames"] if re.match("[0-9:.]+$", n)]
    assert broker["ipAddresses"] == ["192.0.2.8"] and "192.0.2.8" not in broker["dnsNames"]


def test_every_pod_takes_annotations_labels_and_environment_and_keeps_its_own(chart):
    own, all_pods = of(chart.objects(*BACKUP)), "pods.annotations.everywhere=yes"
    values = [*BACKUP, all_pods, "pods.labels.team=wifi"]
    for part in PARTS:
        values += [f"{part}.podAnnotations.part={part}", f"{part}.podLabels.tier={part}",
                   f"{part}.podLabels.app\\.kubernetes\\.io/component=stolen",
                   f"{part}.extraEnv[0].name=HTTPS_PROXY", f"{part}.extraEnv[0].value=http://{part}"]
    for which, w in of(chart.objects(*values)).items():
        part = "flink" if which.startswith("flink-") else which if which in PARTS else "setup"
        metadata = template(w)["metadata"]
        assert metadata["annotations"]["part"] == part and metadata["annotations"]["everywhere"] == "yes", name(w)
        assert metadata["labels"]["tier"] == part and metadata["labels"]["team"] == "wifi", name(w)
        assert labels(own[which]).items() <= labels(w).items(), name(w)
        for c in pod(w)["containers"]:
            if c["name"] != "sweep":
                assert {"name": "HTTPS_PROXY", "value": f"http://{part}"} in c["env"], (name(w), c["name"])


def test_a_part_has_an_account_of_its_own_when_a_cloud_is_to_know_it(chart):
    role = "serviceAccount.annotations.eks\\.amazonaws\\.com/role-arn=arn"
    objects = chart.objects(*BACKUP, *(f"{part}.{role}:{part}" for part in ("mlflow", "clickhouse", "backup", "flink")))
    accounts = {o["metadata"]["name"]: o["metadata"].get("annotations", {}) for o in objects
                if o["kind"] == "ServiceAccount"}
    for part in ("mlflow", "clickhouse", "backup", "flink"):
        assert accounts[f"oal-{part}"] == {"eks.amazonaws.com/role-arn": f"arn:{part}"}
    used = {component(w): pod(w)["serviceAccountName"] for w in workloads(objects)}
    assert used["mlflow"] == "oal-mlflow" and used["backup"] == "oal-backup" and used["push"] == "oal"
    assert used["flink-taskmanager"] == "oal-flink" and set(used.values()) <= accounts.keys()
    assert accounts["oal"] == {} and find(chart.objects("serviceAccount.annotations.a=b"), "ServiceAccount", "oal")[
        "metadata"]["annotations"] == {"a": "b"}


def test_flink_reaches_s3_by_the_role_of_its_account_without_keys(chart):
    objects = chart.objects("flink.checkpoints.storage=s3", "flink.checkpoints.s3.bucket=b")
    assert "/run/secrets/oal/s3" not in find(objects, "ConfigMap", "oal-flink")["data"]["start.sh"]
    assert not [k for w in workloads(objects) for k in mounted_secrets(w).values() if "access-key" in k]


def test_flink_keeps_s3_markers_above_its_files(chart):
    """A store that keeps files in folders (versitygw) refuses to delete them, and a job never started there."""
    line = "fs.s3a.directory.marker.retention: \"keep\""
    for storage, there in (("s3", True), ("pvc", False)):
        objects = chart.objects(f"flink.checkpoints.storage={storage}", "flink.checkpoints.s3.bucket=b")
        assert (line in find(objects, "ConfigMap", "oal-flink")["data"]["config.yaml"]) == there


def test_our_images_can_be_named_by_digest(chart):
    digest = "sha256:" + "ab" * 32
    own = {c["image"] for w in workloads(chart.objects("images.prefix=r.example/", f"images.digests.oal-push={digest}"))
           for c in containers(w)}
    assert f"r.example/oal-push@{digest}" in own and not [i for i in own if i.startswith("r.example/oal-push:")]
    assert "/images/digests" in chart.refusal("images.digests.oal-push=1.2.3")
    assert "/images/digests" in chart.refusal(f"images.digests.oal-pusher={digest}")


def test_artifacts_in_s3_have_a_way_out_an_address_and_keys(chart):
    values = ("mlflow.artifacts=s3://models/oal", "s3.endpoint=https://minio.example.org:9000", "s3.secret=store")
    objects = chart.objects(*values)
    mlflow = of(objects)["mlflow"]
    env = {e["name"]: e["value"] for e in pod(mlflow)["containers"][0]["env"]}
    assert env["AWS_ENDPOINT_URL_S3"] == "https://minio.example.org:9000"
    assert env["AWS_SHARED_CREDENTIALS_FILE"] == "/run/secrets/oal/s3/credentials"
    assert mounted_secrets(mlflow)["store"] == {"access-key", "secret-key"}
    out = find(objects, "NetworkPolicy", "oal-mlflow")["spec"]["egress"]
    assert {"ports": [{"protocol": "TCP", "port": 9000}]} in out
    role = of(chart.objects(values[0]))["mlflow"]
    assert "AWS_SHARED_CREDENTIALS_FILE" not in json.dumps(role) and "store" not in mounted_secrets(role)


def test_pages_for_people_get_an_ingress_or_a_route_and_only_where_a_name_is_given(chart):
    assert not [name(o) for o in chart.objects("pages.ingress.enabled=true") if o["kind"] == "Ingress"]
    objects = chart.objects("pages.ingress.enabled=true", "pages.grafana=g.example.org", "pages.mlflow=m.example.org",
                            "pages.ingress.tlsSecret=pages")
    for part, port, host in (("grafana", "http", "g.example.org"), ("mlflow", "http", "m.example.org")):
        spec = find(objects, "Ingress", f"oal-{part}")["spec"]
        [rule] = spec["rules"]
        backend = rule["http"]["paths"][0]["backend"]["service"]
        assert rule["host"] == host and backend == {"name": f"oal-{part}", "port": {"name": port}}
        assert spec["tls"] == [{"hosts": [host], "secretName": "pages"}]
    # MLflow's own port speaks TLS, and knows by which names it is asked.
    assert find(objects, "Ingress", "oal-mlflow")["metadata"]["annotations"] == {
        "nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"}
    server = yaml.safe_load(find(objects, "ConfigMap", "oal-mlflow")["data"]["server.yaml"])
    assert "m.example.org" in server["allowed_hosts"] and "https://m.example.org" in server["allowed_origins"]
    gateway = "pages.gateway.parentRefs[0].name=public"
    routes = chart.objects("pages.gateway.enabled=true", "pages.grafana=g.example.org", gateway)
    route = find(routes, "HTTPRoute", "oal-grafana")["spec"]
    assert route["rules"] == [{"backendRefs": [{"name": "oal-grafana", "port": 3000}]}]
    push = chart.objects("push.tlsRoute.enabled=true", "push.tlsRoute.host=push.example.org",
                         "push.tlsRoute.parentRefs[0].name=public", "push.tlsRoute.enrolHost=enrol.example.org",
                         "push.access.hosts={push.example.org,enrol.example.org}",
                         "push.enrol.url=https://enrol.example.org")
    assert {(o["spec"]["hostnames"][0], o["spec"]["rules"][0]["backendRefs"][0]["port"])
            for o in push if o["kind"] == "TLSRoute"} == {("push.example.org", 8443), ("enrol.example.org", 8445)}


OIDC = ("oidc.enabled=true", "oidc.issuer=https://id.example.org", "oidc.secret=login", "pages.mlflow=m.example.org",
        "oidc.people.alice@example\\.org=owner", "oidc.grafana.authUrl=https://id.example.org/auth",
        "oidc.grafana.tokenUrl=https://id.example.org/token", "oidc.grafana.userinfoUrl=https://id.example.org/me")


def test_people_come_to_mlflow_by_the_proxy_alone_and_under_their_own_names(chart):
    objects = chart.objects(*OIDC, "networkPolicy.people[0].ipBlock.cidr=192.0.2.0/24")
    server = yaml.safe_load(find(objects, "ConfigMap", "oal-mlflow")["data"]["server.yaml"])
    assert {"user": "alice@example.org", "role": "owner",
            "password_file": "/run/secrets/oal/oidc/mlflow-password"} in server["users"]
    proxy = yaml.safe_load(find(objects, "ConfigMap", "oal-oidc")["data"]["proxy.yaml"])
    assert proxy["upstreamConfig"]["upstreams"][0]["uri"] == "https://oal-mlflow:5000"
    for part, direct in (("mlflow", False), ("oidc", True)):
        assert ("192.0.2.0/24" in json.dumps(find(objects, "NetworkPolicy", f"oal-{part}"))) == direct
    parts = {part: labels(w) for part, w in of(objects).items()}
    assert allowed(policies(objects), parts["oidc"], parts["mlflow"], 5000)
    assert mounted_secrets(of(objects)["mlflow"])["login"] == {"mlflow-password"}
    assert mounted_secrets(of(objects)["grafana"])["login"] == {"client-secret"}


def test_grafana_logs_people_in_by_the_provider_and_refuses_who_has_no_role(chart):
    env = {e["name"]: e.get("value") for e in pod(of(chart.objects(*OIDC))["grafana"])["containers"][0]["env"]}
    assert env["GF_AUTH_GENERIC_OAUTH_CLIENT_SECRET"] == "$__file{/run/secrets/oal/oidc/client-secret}"
    assert env["GF_AUTH_GENERIC_OAUTH_ROLE_ATTRIBUTE_STRICT"] == "true"
    assert env["GF_AUTH_GENERIC_OAUTH_TOKEN_URL"] == "https://id.example.org/token"


def test_mail_has_a_server_and_keys_of_contact_points_are_in_no_config_map(chart):
    objects = chart.objects("grafana.smtp.host=smtp.example.org:587", "grafana.smtp.user=oal",
                            "grafana.secret.name=notify", "grafana.secret.keys={smtp-password,webhook-key}")
    grafana = of(objects)["grafana"]
    env = {e["name"]: e.get("value") for e in pod(grafana)["containers"][0]["env"]}
    assert env["GF_SMTP_ENABLED"] == "true" and env["GF_SMTP_HOST"] == "smtp.example.org:587"
    assert env["GF_SMTP_PASSWORD"] == "$__file{/run/secrets/oal/own/smtp-password}"
    assert mounted_secrets(grafana)["notify"] == {"smtp-password", "webhook-key"}
    assert "GF_SMTP_ENABLED" not in json.dumps(of(chart.objects())["grafana"])


def test_clickhouses_backups_are_swept_where_they_are_and_only_the_first_of_a_week_is_full(chart):
    objects = chart.objects(*BACKUP)
    clickhouse = of(objects)["clickhouse"]
    [sweep] = [c for c in pod(clickhouse)["containers"] if c["name"] == "sweep"]
    backup = find(objects, "ConfigMap", "oal-backup")["data"]["backup.toml"]
    assert 'sweep_list = "oal-backup-remove.tsv"' in backup
    files = find(objects, "ConfigMap", "oal-clickhouse")["data"]["config.xml"]
    [path] = re.findall("<user_files_path>(.*)</user_files_path>", files)
    assert f"{path}oal-backup-remove.tsv" in sweep["command"]
    for volume in ("backups", "files"):
        where = {m["mountPath"] for c in pod(clickhouse)["containers"] for m in c["volumeMounts"]
                 if m["name"] == volume}
        assert len(where) == 1, "both see one folder at one place"
    create = next(c for c in pod(of(objects)["backup"])["initContainers"] if c["name"] == "create")
    assert create["command"][-2:] == ["--full-every", "7"]
    assert not [c for c in pod(of(chart.objects())["clickhouse"])["containers"] if c["name"] == "sweep"]


@pytest.mark.parametrize("values", [
    (), BACKUP, (*BACKUP, "mlflow.enabled=false", "mlflow.external.url=https://mlflow.example.org"),
    ("backup.enabled=true", "s3.secret=s", "backup.s3.bucket=backups")], ids=["default", "volume", "no MLflow", "s3"])
def test_every_claim_has_a_pod_from_the_start(chart, values):
    """`helm --wait` waits until each is bound, and most storage classes wait for the first pod that mounts it."""
    objects = chart.objects(*values)
    claims = {o["metadata"]["name"] for o in objects if o["kind"] == "PersistentVolumeClaim"}
    pods = {w["metadata"]["name"]: pod(w) for w in workloads(objects) if w["kind"] != "CronJob"}
    mounted = {v["persistentVolumeClaim"]["claimName"] for p in pods.values() for v in p["volumes"] if
               "persistentVolumeClaim" in v}
    assert claims and claims <= mounted
    nightly = [pod(w) for w in workloads(objects) if w["kind"] == "CronJob"]
    first = [p for n, p in pods.items() if n.startswith("oal-backup-volume-")]
    assert [p.get("affinity") for p in first] == [p.get("affinity") for p in nightly], "bound where that one runs"


def test_backups_in_s3_need_no_volume_and_their_keys_stand_in_no_configuration(chart):
    objects = chart.objects("backup.enabled=true", "backup.s3.bucket=backups", "s3.secret=store",
                            "s3.endpoint=https://minio.example.org:9000", "clickhouse.shards=2")
    config = find(objects, "ConfigMap", "oal-clickhouse")["data"]["config.xml"]
    assert "<endpoint>https://minio.example.org:9000/backups/wifi-oal/</endpoint>" in config
    assert config.count("<storage_configuration>") == config.count("<backups><allowed_disk>") == 1
    assert '<access_key_id from_env="OAL_S3_ACCESS_KEY"/>' in config and "<loadDefaultCAFile>true" in config
    for w in workloads(objects):
        if component(w) in ("clickhouse", "backup"):
            assert mounted_secrets(w)["store"] == {"access-key", "secret-key"}, name(w)
        for claim in w["spec"].get("volumeClaimTemplates", []):
            assert claim["metadata"]["name"] != "backups"
    for part in ("clickhouse", "backup"):
        assert {"ports": [{"protocol": "TCP", "port": 9000}]} in find(
            objects, "NetworkPolicy", f"oal-{part}")["spec"]["egress"]
    role = find(chart.objects("backup.enabled=true", "backup.s3.bucket=backups"), "ConfigMap", "oal-clickhouse")
    assert "<use_environment_credentials>true" in role["data"]["config.xml"]
    assert "<loadDefaultCAFile>true" not in find(chart.objects(), "ConfigMap", "oal-clickhouse")["data"]["config.xml"]


def test_helm_test_asks_every_part_that_is_installed(chart):
    [hook] = [o for o in chart.objects() if o["kind"] == "Job"
              and o["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"]
    said = "\n".join(containers(hook)[0]["args"])
    for part in ("clickhouse:8123", "kafka-0.oal-kafka-headless:9093", "flink:8081", "mlflow:5000/health",
                 "registry:5001/healthz", "trainer:5002/healthz", "push-admin:8080/readyz",
                 "grafana:3000/api/health"):
        assert f"oal-{part}" in said
    objects = chart.objects()
    source = labels(hook)
    for target, port in (("clickhouse", 8123), ("kafka", 9093), ("flink-jobmanager", 8081), ("push", 8080)):
        assert allowed(policies(objects), source, labels(of(objects)[target]), port), target


@pytest.mark.parametrize("key", ["podAnnotations", "podLabels", "extraEnv"])
def test_every_part_of_the_values_has_the_same_keys(key):
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert all(key in values[part] for part in PARTS) and key in values["clickhouse"]["keeper"]


def test_start_script_of_postgresql_moves_a_whole_cluster_into_place(chart):
    """initdb writes PG_VERSION first: whoever looks at that takes half a cluster for one."""
    text = find(chart.objects(), "ConfigMap", "oal-postgres")["data"]["start.sh"]
    begin, moved = text.index('initdb --pgdata="$PGDATA.new"'), text.index('mv "$PGDATA.new" "$PGDATA"')
    assert begin < moved < text.index("pg_ctl -w -t 300")
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0


def test_readiness_is_asked_often_enough_for_whoever_waits(chart):
    """`helm --wait` and a drain wait for the next answer of the slowest, as do all parts that are ready by then."""
    for values in ((), OIDC, ("clickhouse.shards=2", "clickhouse.backup.enabled=true", "backup.enabled=true")):
        periods = {one["name"]: one["readinessProbe"].get("periodSeconds", 10) for workload in
                   workloads(chart.objects(*values)) for one in pod(workload)["containers"] if "readinessProbe" in one}
        assert max(periods.values()) <= 10, periods
        assert ("sweep" in periods) == ("backup.enabled=true" in values), periods


def test_no_probe_kills_what_is_only_slow_or_waits_for_another_part(chart):
    """An install on a busy node: everything begins at once, and what another part has to give comes minutes later."""
    for values in ((), OIDC, ("clickhouse.shards=2", "clickhouse.replicas=2")):
        for workload in workloads(chart.objects(*values)):
            for one in pod(workload)["containers"]:
                kill = [one[probe] for probe in ("startupProbe", "livenessProbe") if probe in one]
                for probe in (*kill, *([one["readinessProbe"]] if "readinessProbe" in one else ())):
                    if "tcpSocket" not in probe:  # what has to do something for its answer
                        assert probe.get("timeoutSeconds", 1) >= 5, (one["name"], probe)
                for probe in kill:
                    assert probe["periodSeconds"] * probe["failureThreshold"] >= 120, (one["name"], probe)
                if "startupProbe" in one:
                    start = one["startupProbe"]
                    assert start["periodSeconds"] * start["failureThreshold"] >= 300, (one["name"], start)
    for part in ("mlflow", "registry", "trainer"):  # their health says no while Kafka or MLflow are away
        [only] = pod(of(chart.objects())[part])["containers"]
        assert "tcpSocket" in only["startupProbe"] and "tcpSocket" in only["livenessProbe"]
        assert "httpGet" in only["readinessProbe"]


def test_what_kubernetes_lets_nobody_change_in_a_job_has_a_name_of_its_own(chart):
    """An upgrade that only moves pods or marks them would be refused otherwise: a Job's template is immutable."""
    def templates(*values: str) -> dict[str, dict]:
        objects = chart.objects("backup.enabled=true", "clickhouse.backup.enabled=true", *values)
        return {o["metadata"]["name"]: o["spec"]["template"] for o in objects
                if o["kind"] == "Job" and "helm.sh/hook" not in o["metadata"].get("annotations", {})}

    before = templates()
    assert {name.rpartition("-")[0] for name in before} == {"oal-topics", "oal-migrate", "oal-backup-volume"}
    for change in ("setup.podAnnotations.owner=network-team", "setup.podLabels.team=wifi",
                   "setup.nodeSelector.disk=ssd", "scheduling.nodeSelector.disk=ssd",
                   "pods.annotations.owner=network-team", "pods.labels.team=wifi",
                   "setup.extraEnv[0].name=TZ,setup.extraEnv[0].value=UTC", "images.pullPolicy=Always",
                   "images.pullSecrets[0]=registry"):
        for job, after in templates(change).items():
            assert before.get(job, after) == after, f"{change} changes {job}"
