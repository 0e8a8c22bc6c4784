"""What values do."""
import base64
import gzip
import hashlib
import json
import re
import subprocess
import tarfile

import pytest
import yaml
from conftest import CHART, ROOT
from custom_kinds import KINDS
from manifests import EXAMPLES, component, containers, find, labels, mounted_secrets, name, pod, template, workloads
from schemas import write

VERSIONS = [f"1.{minor}.0" for minor in range(31, 38)]


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda v: "+".join(v) or "default")
def test_helm_finds_nothing_to_complain_of(chart, values):
    words = [w for v in values for w in ("-f", str(CHART / "examples" / f"{v}.yaml"))]
    done = chart.run("lint", "--strict", "--kube-version", "1.37.0", str(CHART), *words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_every_example_is_valid_for_kubernetes(chart, tools, version, tmp_path_factory):
    folder = write(tmp_path_factory.getbasetemp() / "schemas", version)
    whole = "\n---\n".join(chart.text(*values) for values in EXAMPLES)
    # Other projects' kinds: test_custom_kinds.py.
    done = subprocess.run([
        tools / "kubeconform", "-strict", "-skip", ",".join(sorted(KINDS)), "-schema-location",
        str(folder / "{{.ResourceKind}}{{.KindSuffix}}.json")
    ], input=whole, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_names_the_key_that_is_wrong(chart):
    for value, said in {
            "kafka.replicas=2": "/kafka/replicas",
            "kafka.replcas=1": "'replcas' not allowed",
            "clickhouse.shards=0": "/clickhouse/shards",
            "clickhouse.shards=65": "/clickhouse/shards",
            "clickhouse.replicas=4": "/clickhouse/replicas",
            "clickhouse.keeper.replicas=2": "/clickhouse/keeper/replicas",
            "push.access.type=Public": "/push/access/type",
            "clickhouse.resources.limits.memory=plenty": "/clickhouse/resources/limits/memory",
            "pki.mode=none": "/pki/mode",
            "images.kafka=apache/kafka": "/images/kafka",
            "images.prefix=registry.example.org": "/images/prefix",
            "flink.checkpoints.storage=disk": "/flink/checkpoints/storage",
            "push.enrol.url=http://x": "/push/enrol/url",
            "trainer.replicas=many": "/trainer/replicas",
    }.items():
        assert said in chart.refusal(value), value


def test_what_a_switch_needs_is_asked_for_by_name(chart):
    for values, said in {
        ("kafka.enabled=false", ): "kafka.external.bootstrap",
        ("clickhouse.enabled=false", ): "clickhouse.external.url",
        ("postgres.enabled=false", ): "postgres.external.host",
        ("mlflow.enabled=false", ): "mlflow.external.url",
        ("flink.checkpoints.storage=s3", ): "flink.checkpoints.s3.bucket",
        ("push.store=file", "push.replicas=2"): "set push.store to postgres",
        ("push.ingress.enabled=true", "push.enrol.enabled=false"): "push.ingress.host",
        ("kafka.access.type=LoadBalancer", ): "kafka.access.hosts",
        ("kafka.access.type=LoadBalancer", "kafka.replicas=3", "kafka.access.hosts={a}"): "kafka.access.hosts",
        ("backup.enabled=true", ): "clickhouse.backup.enabled",
        ("push.access.type=NodePort", "push.access.hosts={a}"): "push.enrol.url",
        ("push.access.type=NodePort", "push.enrol.url=https://a:8445"): "push.access.hosts",
        ("push.tlsRoute.enabled=true", "push.enrol.enabled=false", "push.tlsRoute.host=a"): "push.tlsRoute.parentRefs",
        ("oidc.enabled=true", "pages.mlflow=m.example", "oidc.secret=s"): "oidc.issuer",
        ("oidc.enabled=true", "oidc.issuer=https://id", "oidc.secret=s"): "pages.mlflow",
        ("pages.mlflow=m.example", "pages.gateway.enabled=true"): "oidc.enabled",
        ("pages.grafana=g.example", "pages.gateway.enabled=true"): "pages.gateway.parentRefs",
    }.items():
        assert said in chart.refusal(*values), values


def test_an_existing_part_takes_the_place_of_ours(chart):
    for example, gone in {
            "kafka-external": "kafka", "strimzi": "kafka", "clickhouse-operator": "clickhouse",
            "postgres-external": "postgres", "flink-operator": "flink", "grafana-managed": "grafana"
    }.items():
        objects = chart.objects(example)
        assert not [name(o)
                    for o in workloads(objects) if component(o) == gone or component(o).startswith(f"{gone}-")], example
        # Nor does anybody ask our Service, which is not there.
        assert not [
            name(o) for o in objects if o["kind"] == "Service" and o["metadata"]["name"].startswith(f"oal-{gone}")
        ], example
        assert not re.search(rf"//oal-{gone}:|oal-{gone}-headless|host=oal-{gone} ", chart.text(example)), example


def test_a_new_release_has_key_groups_for_many_slots_and_an_older_one_its_own(chart):
    """What is installed cannot be asked here: `flink.maxParallelism=0` is what such a release has."""
    for values, said in (((), "\nmax.parallelism=720\n"), (("flink.maxParallelism=0",), None)):
        job = find(chart.objects(*values), "ConfigMap", "oal-flink")["data"]["job.properties"]
        assert ("max.parallelism" in job) == bool(said) and (said or "") in job
    assert "maxParallelism" in chart.refusal("flink.maxParallelism=-1")


def test_clients_of_an_existing_part_are_sent_there(chart):
    assert "kafka-0.example.org:9093" in find(chart.objects("kafka-external"), "ConfigMap",
                                              "oal-trainer")["data"]["online.yaml"]
    job = find(chart.objects("clickhouse-operator"), "ConfigMap", "oal-flink")["data"]["job.properties"]
    assert "clickhouse.url=https://clickhouse.example.org:8443\n" in job
    assert "host=postgres.example.org port=5432" in find(chart.objects("postgres-external"), "ConfigMap",
                                                         "oal-push")["data"]["dsn"]
    assert mounted_secrets(find(chart.objects("postgres-external"), "StatefulSet",
                                "oal-push"))["oal-postgres"] == {"push.pgpass"}


def test_a_managed_grafana_gets_the_dashboards_with_its_label(chart):
    boards = [
        o for o in chart.objects("grafana-managed") if o["kind"] == "ConfigMap" and "dashboard" in o["metadata"]["name"]
    ]
    assert len(boards) == len(list((ROOT / "observe/grafana/dashboards").glob("*.json"))) >= 5
    assert all(o["metadata"]["labels"]["grafana_dashboard"] == "1" for o in boards)


def test_dashboards_migrations_topics_and_policies_are_the_ones_of_their_folders(chart):
    objects = chart.objects()
    for migration in (ROOT / "clickhouse/migrations").glob("*.sql"):
        assert find(objects, "ConfigMap", "oal-migrate")["data"][migration.name] == migration.read_text()
    for user in (ROOT / "clickhouse/users").glob("*.xml"):
        assert find(objects, "ConfigMap",
                    "oal-clickhouse-users")["data"][user.name].rstrip() == user.read_text().rstrip()
    topics = yaml.safe_load((ROOT / "platform/kafka/topics.yaml").read_text())
    rendered = yaml.safe_load(find(objects, "ConfigMap", "oal-topics")["data"]["topics.yaml"])
    assert all(rendered[part] == topics[part] for part in ("acls", "quotas", "topics"))
    assert rendered["defaults"]["config"].items() >= {k: v for k, v in topics["defaults"]["config"].items()}.items()
    for board in (ROOT / "observe/grafana/dashboards").glob("*.json"):
        assert find(objects, "ConfigMap",
                    f"oal-dashboard-{board.stem}")["data"][board.name].rstrip() == board.read_text().rstrip()
    assert "default.yaml" in find(objects, "ConfigMap", "oal-policies")["data"]


def test_the_principal_of_a_certificate_is_made_as_on_the_local_platform(chart):
    ours = find(chart.objects(), "ConfigMap", "oal-kafka")["data"]["server.properties"]
    local = (ROOT / "platform/kafka/server.properties").read_text().replace("$$", "$")
    for key in ("ssl.principal.mapping.rules", "authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found",
                "ssl.client.auth", "auto.create.topics.enable"):
        line = next(line for line in local.splitlines() if line.startswith(f"{key}="))
        assert line in ours.splitlines(), key


def test_three_brokers_keep_three_copies_and_go_on_with_two(chart):
    objects = chart.objects("fleet")
    properties = dict(
        line.split("=", 1)
        for line in find(objects, "ConfigMap", "oal-kafka")["data"]["server.properties"].splitlines()
        if line and line[0] != "#")
    assert properties["min.insync.replicas"] == "2" and properties["transaction.state.log.replication.factor"] == "3"
    assert properties["controller.quorum.voters"].count("@") == 3
    topics = yaml.safe_load(find(objects, "ConfigMap", "oal-topics")["data"]["topics.yaml"])["defaults"]
    assert topics["replication"] == 3 and topics["partitions"] == 32 and topics["config"][
        "min.insync.replicas"] == 2 and topics["config"]["retention.bytes"] == 12884901888
    assert len([o for o in objects
                if o["kind"] == "Service" and re.fullmatch(r"oal-kafka-\d", o["metadata"]["name"])]) == 3


def test_names_under_which_clients_come_are_in_the_certificates(chart):
    arguments = pod(find(chart.objects("fleet"), "Job", "oal-secrets"))["containers"][0]["args"]
    hosts = {w.split("=")[1]: w.split("=")[2].split(",") for w in arguments if w.startswith("--hosts=")}
    assert {"kafka-2.oal.example.org", "oal-kafka-2.oal-kafka-headless"} <= set(hosts["broker"])
    assert {"push.oal.example.org", "oal-push"} <= set(hosts["deploy"])


def test_certificates_of_cert_manager_make_the_same_principals(chart):
    certificates = {
        o["metadata"]["name"]: o["spec"] for o in chart.objects("cert-manager") if o["kind"] == "Certificate"
    }
    for service in ("broker", "admin", "stream-jobs", "trainer", "model-registry", "deploy"):
        spec = certificates[f"oal-tls-{service}"]
        assert spec["commonName"] == service and spec["subject"] == {
            "organizations": ["oal"], "organizationalUnits": ["service"]
        }
        assert spec["additionalOutputFormats"] == [{"type": "CombinedPEM"}
                                                   ] and spec["privateKey"]["encoding"] == "PKCS8"
        assert ("server auth" in spec["usages"]) == (service not in ("admin", "stream-jobs"))
    assert certificates["oal-ap-ca"]["isCA"] and "--certificates" not in pod(
        find(chart.objects("cert-manager"), "Job", "oal-secrets"))["containers"][0]["args"]


def test_an_issuer_of_your_own_signs_and_no_root_is_made(chart):
    objects = chart.objects("cert-manager", "pki.certManager.issuer.name=corporate",
                            "pki.certManager.issuer.kind=ClusterIssuer")
    assert not [o for o in objects if o["kind"] == "Issuer"]
    assert {o["spec"]["issuerRef"]["name"] for o in objects if o["kind"] == "Certificate"} == {"corporate"}


def test_every_mounted_secret_is_one_that_somebody_makes(chart):
    for values in EXAMPLES:
        prefix = "ours" if "existing-secrets" in values else "oal"
        known = {
            f"{prefix}-{n}"
            for n in ("secrets", "flink", "ap-ca",
                      *(f"tls-{s}"
                        for s in ("broker", "admin", "stream-jobs", "trainer", "model-registry", "deploy", "viewer",
                                  "transactions", "clickhouse", "postgres", "mlflow", "jolokia")))
        }
        named = {"oal-postgres", "oal-s3", "oal-oidc"}
        for w in workloads(chart.objects(*values)):
            assert set(mounted_secrets(w)) <= known | named, name(w)


def test_a_changed_configuration_restarts_its_pods_and_only_those(chart):
    before, after = ({name(w): template(w) for w in workloads(chart.objects(*values)) if w["kind"] != "Job"}
                     for values in ((), ("push.enrol.certificateDays=9", )))
    assert [n for n in before if before[n] != after[n]] == ["StatefulSet/oal-push"]
    before, after = ({name(w): template(w) for w in workloads(chart.objects(*values)) if w["kind"] != "Job"}
                     for values in ((), ("kafka.config.num\\.io\\.threads=8", )))
    assert [n for n in before if before[n] != after[n]] == ["StatefulSet/oal-kafka"]


def test_a_new_version_of_the_chart_alone_restarts_nothing(chart):
    for w in workloads(chart.objects()):
        assert not {"helm.sh/chart", "app.kubernetes.io/version"} & set(labels(w)), name(w)


def test_topics_and_migrations_run_again_when_they_changed(chart):
    def jobs(*values):
        return {component(o): o["metadata"]["name"] for o in chart.objects(*values) if o["kind"] == "Job"}

    assert jobs("kafka.topics.partitions=8")["topics"] != jobs()["topics"] and jobs(
        "kafka.topics.partitions=8")["migrate"] == jobs()["migrate"]
    assert jobs("images.tag=9.9.9")["migrate"] != jobs()["migrate"]


def test_replicated_parts_spread_and_keep_one_through_a_drain(chart):
    objects = chart.objects("fleet")
    for part in ("kafka", "push", "trainer", "flink-taskmanager"):
        budget = find(objects, "PodDisruptionBudget", f"oal-{part}")
        workload = next(w for w in workloads(objects) if component(w) == part)
        assert budget["spec"]["maxUnavailable"] == 1 and budget["spec"]["selector"]["matchLabels"].items() <= labels(
            workload).items()
        assert {c["topologyKey"] for c in pod(workload)["topologySpreadConstraints"]
                } == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}


def test_there_is_one_registry_and_one_mlflow_whatever_the_values(chart):
    for values in EXAMPLES:
        objects = chart.objects(*values)
        for part in ("registry", "mlflow"):
            assert find(objects, "StatefulSet", f"oal-{part}")["spec"]["replicas"] == 1
    assert "'replicas' not allowed" in chart.refusal("registry.replicas=2")


def test_images_are_the_ones_of_the_images_folder(chart):
    tags = dict(
        line.split("=", 1) for line in (ROOT / "platform/images/tags.env").read_text().splitlines()
        if re.match(r"[A-Z_]+=", line))
    images = yaml.safe_load((CHART / "values.yaml").read_text())["images"]
    for part in ("kafka", "clickhouse", "postgres", "grafana"):
        assert images[part] == tags[f"{part.upper()}_IMAGE"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == tags["OAL_VERSION"]
    own = {c["image"] for w in workloads(chart.objects("images.prefix=r.example/"))
           for c in containers(w)} - {images[p] for p in ("kafka", "clickhouse", "postgres", "grafana")}
    assert own == {
        f"r.example/{name}:{tags['OAL_VERSION']}"
        for name in ("oal-push", "oal-learning", "oal-stream-jobs", "oal-setup", "oal-telegraf")
    }


def test_a_release_fits_its_secret(chart, tmp_path):
    """Helm keeps chart and manifests in one Secret, gzip in base64, and the API server takes 1 MiB. A quarter of it
    must be free: another dashboard or migration is no reason to fail."""
    done = chart.run("package", str(CHART), "-d", str(tmp_path))
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(tmp_path.glob("*.tgz"))) as package:
        files = {
            member.name: base64.b64encode(package.extractfile(member).read()).decode() for member in package
            if member.isfile()
        }
    for values in EXAMPLES:
        release = len(
            base64.b64encode(gzip.compress(json.dumps({"files": files, "manifest": chart.text(*values)}).encode())))
        assert release < 3 << 18, (values, release, sorted(files, key=lambda name: -len(files[name]))[:5])


def test_every_key_of_the_values_is_used_by_a_template():
    templates = "".join(p.read_text() for p in (CHART / "templates").iterdir())
    keys = set()

    def walk(value, path):
        for key, inner in value.items():
            keys.add((*path, key))
            if isinstance(inner, dict) and key not in ("resources", "annotations"):
                walk(inner, (*path, key))
    walk(yaml.safe_load((CHART / "values.yaml").read_text()), ())
    unused = {".".join(path) for path in keys if not re.search(rf"\.{re.escape(path[-1])}\b", templates)}
    assert not unused


def test_the_reference_has_every_value_and_the_packed_chart_shows_it(chart, tmp_path):
    text = (CHART / "README.md").read_text()
    keys = set()

    def walk(value, path):
        for key, inner in value.items():
            keys.add(".".join((*path, key)))
            if isinstance(inner, dict) and key not in ("requests", "limits", "accessPoint", "annotations"):
                walk(inner, (*path, key))
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    walk(values, ())
    lines = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    headings = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert set(headings) == set(values) and len(lines) == len(set(lines))
    for path in keys - set(headings):
        parent = path.rpartition(".")[0]
        assert path in lines or parent in lines or parent.rpartition(".")[0] in lines, path
    assert chart.run("package", str(CHART), "-d", str(tmp_path)).returncode == 0
    [package] = tmp_path.glob("*.tgz")
    assert chart.run("show", "readme", str(package)).stdout.strip() == text.strip()


def test_the_cluster_id_of_kafka_is_a_uuid_and_the_release_s_own(chart):
    line = next(line for line in find(chart.objects(), "ConfigMap", "oal-kafka")["data"]["start.sh"].splitlines()
                if "kafka-storage.sh" in line)
    cluster_id = line.split(" -t ")[1].split()[0]
    assert base64.urlsafe_b64decode(cluster_id + "==") == hashlib.sha256(b"wifi/oal").hexdigest()[:16].encode()


def test_a_kafka_without_replicas_outlasts_a_stall_of_its_machine(chart):
    """A fenced broker whose partitions nobody takes over skips the end markers of transactions. With replicas the
    default, 9 s, lets another broker take over sooner."""
    line = "broker.session.timeout.ms=18000"

    def lines(*values):
        return find(chart.objects(*values), "ConfigMap", "oal-kafka")["data"]["server.properties"].splitlines()

    assert line in lines() and line in (ROOT / "platform/kafka/server.properties").read_text().splitlines()
    assert line not in lines("fleet")


def test_start_scripts_are_sound_shell(chart, tmp_path):
    for values in ((), ("fleet",), ("small",), ("clickhouse-cluster",)):
        for o in chart.objects(*values):
            for key, text in (o.get("data") or {}).items() if o["kind"] == "ConfigMap" else ():
                if key.endswith(".sh"):
                    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
                    assert done.returncode == 0, (name(o), done.stderr)


def test_transactions_outlast_an_outage_of_clickhouse(chart):
    """One that the broker ends while ClickHouse is away loses a checkpoint's training items. Another's Kafka allows 15
    minutes by default, and refuses a job that asks for more."""
    def of(name, file, *values):
        return find(chart.objects(*values), "ConfigMap", name)["data"][file].splitlines()

    longest = "transaction.max.timeout.ms=86400000"
    assert longest in of("oal-kafka", "server.properties")
    assert longest in (ROOT / "platform/kafka/server.properties").read_text().splitlines()
    asked = "kafka.transaction.timeout.ms=86400000"
    assert asked in of("oal-flink", "job.properties")
    assert asked in (ROOT / "platform/compose/config/flink/job.properties").read_text().splitlines()
    assert asked not in of("oal-flink", "job.properties", "kafka-external")
