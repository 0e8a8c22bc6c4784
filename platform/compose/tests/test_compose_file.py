"""docker-compose.yml as the real Compose reads it; no engine is asked."""
import json
import os
import re
import subprocess
import tomllib
from itertools import combinations

import pytest
import yaml
from composed import PROFILES, program
from docker_engine import OWN, ROOT, tags

ONCE = {"secrets", "agent", "topics", "migrate", "backup"}
#: Of these: what a person runs, and nothing waits for.
ASKED = {"backup"}


def compose(*arguments, more: dict | None = None) -> str:
    done = subprocess.run([program(), "--project-directory", ROOT, "-f", ROOT / "docker-compose.yml", *arguments],
                          capture_output=True, text=True, timeout=120, cwd=ROOT,
                          env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **(more or {})})
    assert done.returncode == 0, done.stderr
    assert "variable is not set" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def services() -> dict:
    return json.loads(compose("--profile", "*", "config", "--format", "json"))["services"]


@pytest.mark.parametrize("profiles", [c for n in range(len(PROFILES) + 1) for c in combinations(PROFILES, n)],
                         ids="+".join)
def test_every_choice_of_profiles_is_whole(profiles):
    compose(*(part for profile in profiles for part in ("--profile", profile)), "config", "-q")


def test_a_plain_checkout_needs_no_option():
    """.env is the list of tags."""
    assert (ROOT / ".env").resolve() == ROOT / "platform" / "images" / "tags.env"
    assert f"oal-push:{tags()['OAL_VERSION']}" in compose("config", "--images")


def test_images_of_a_release_are_named_by_the_environment():
    """As docs/install-host.md has it: registry and version, over .env."""
    images = compose("--profile", "*", "config", "--images",
                     more={"OAL_REGISTRY": "r.example/oal/", "OAL_VERSION": "9.9.9-rc.1"}).split()
    assert {image for image in images if "/oal-" in image} == {
        f"r.example/oal/oal-{name}:9.9.9-rc.1" for name in OWN}


def test_every_image_is_one_of_tags_env(services):
    text = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    for name, service in text["services"].items():
        if "image" in service:
            assert re.fullmatch(r"\$\{(\w+_IMAGE)\}", service["image"]) and service["image"][2:-1] in tags(), name
    assert {s["image"] for s in services.values()} <= set(tags(standins=False).values())


def test_every_service_has_a_health_check_or_ends_and_is_waited_for(services):
    for name, service in services.items():
        if name in ONCE:
            assert service["restart"] == "no"
            waits = [
                other for other in services.values()
                if other.get("depends_on", {}).get(name, {}).get("condition") == "service_completed_successfully"
            ]
            assert bool(waits) == (name not in ASKED), f"nobody waits for {name}"
        else:
            check = service["healthcheck"]
            assert check["test"][0] in ("CMD", "CMD-SHELL") and check["retries"] and check["start_period"], name
            assert service["restart"] == "unless-stopped", name


def test_nobody_starts_before_what_it_needs_is_well(services):
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] == ("service_completed_successfully"
                                        if other in ONCE else "service_healthy"), f"{name} → {other}"


def test_every_service_may_do_no_more_than_it_needs(services):
    for name, service in services.items():
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and service["security_opt"] == [
            "no-new-privileges:true"
        ], name
        assert not service.get("privileged") and service.get("pids_limit"), name
        assert service.get("cap_add", []) == (["CHOWN", "DAC_OVERRIDE", "FOWNER"] if name == "secrets" else []), name
        if name == "secrets":
            assert service["network_mode"] == "none"
        else:
            own = service["image"].startswith("oal-")
            assert own or service["user"].split(":")[0] not in ("", "0", "root"), name


@pytest.mark.parametrize("switch,plain", [("on", "http"), ("", "https")])
def test_the_switch_of_tls_changes_every_address(switch, plain):
    text = compose("--profile", "*", "config", "--format", "json", more={"OAL_TLS": switch})
    for name, service in json.loads(text)["services"].items():
        for said in re.findall(rf"\b{plain}://[a-z]+:\d+",
                               json.dumps([service.get(key) for key in ("environment", "command", "healthcheck")])):
            assert said in ("http://localhost:3000", "https://jobmanager:8081"), f"{name}: {said}"  # Grafana, Flink
    assert json.loads(text)["services"]["grafana"]["environment"]["OAL_CLICKHOUSE_SECURE"] == str(bool(switch)).lower()


def test_memory_is_limited_and_adds_up(services):
    limits = {name: int(service["mem_limit"]) for name, service in services.items()}
    lasting = sum(limit for name, limit in limits.items() if name not in ONCE)
    print(f"\n  limits of all that lasts: {lasting / 2**30:.1f} GiB")
    assert lasting <= 10 * 2**30


def test_ports_are_published_on_loopback_only(services):
    published = {name: service.get("ports", []) for name, service in services.items()}
    for name, ports in published.items():
        for port in ports:
            assert port.get("host_ip") == "127.0.0.1", f"{name} {port}"
    everywhere = [p["published"] for ports in published.values() for p in ports]
    assert len(everywhere) == len(set(everywhere))


def test_no_secret_is_in_the_environment(services):
    for name, service in services.items():
        for key, value in (service.get("environment") or {}).items():
            if re.search(r"(?i)passw|token|secret|_key$|credential", key):
                assert key.endswith("_FILE") and str(value).startswith("/run/secrets/oal/"), f"{name}: {key}"
            assert not re.search(r"//[^/@]*:[^/@]*@", str(value or "")), f"{name}: {key} holds a password"


def test_what_is_written_is_in_named_volumes(services):
    for name, service in services.items():
        for mount in service.get("volumes", []):
            if mount["type"] == "bind" and not (name == "secrets" and mount["target"] == "/state"):
                assert mount.get("read_only"), f"{name} may write {mount['source']}"


def test_each_service_mounts_only_its_own_secrets(services):
    spec = yaml.safe_load((ROOT / "platform" / "compose" / "secrets.yaml").read_text())["services"]
    shared = {"jobmanager": "flink", "taskmanager": "flink"}
    for name, service in services.items():
        if name == "secrets":
            assert {m["source"].removeprefix("secrets-") for m in service["volumes"]
                    if m["type"] == "volume"} == set(spec)
            continue
        mounted = {m["source"] for m in service.get("volumes", []) if m["source"].startswith("secrets-")}
        assert mounted <= {f"secrets-{shared.get(name, name)}"}, name
        assert all(m["read_only"] for m in service.get("volumes", []) if m["source"].startswith("secrets-")), name


def test_no_service_gets_the_root_key():
    spec = yaml.safe_load((ROOT / "platform" / "compose" / "secrets.yaml").read_text())["services"]
    for name, service in spec.items():
        assert "ca.key" not in service.get("pki", []), name
        assert ("ap-ca.key" in service.get("pki", [])) == (name == "push"), name


def test_a_policy_that_is_edited_in_the_checkout_is_read(services):
    """In the image it would change with the next build only."""
    for name, config in (("registry", "registry/registry.yaml"), ("trainer", "trainer/online.yaml")):
        (folder,) = re.findall(r"^policies: (\S+)", (ROOT / "platform/compose/config" / config).read_text(), re.M)
        assert {"type": "bind", "source": str(ROOT / "policies/in-force"), "target": folder}.items() <= next(
            m for m in services[name]["volumes"] if m["target"] == folder).items()


def test_the_backup_service_keeps_what_docs_say_and_its_data_are_swept(services):
    """Of ClickHouse, MLflow and the push service; where the server writes it, `sweep` removes it, as the same user."""
    config = tomllib.loads((ROOT / "platform/compose/config/backup/backup.toml").read_text().replace("${if_tls}", ""))
    assert {"clickhouse", "mlflow", "push"} <= set(config)
    assert config["folder"].startswith(services["backup"]["volumes"][0]["target"] + "/")
    assert config["mlflow"]["state_dir"] in {m["target"] for m in services["backup"]["volumes"]}
    allowed = re.search(r"<allowed_path>(.*?)/?</allowed_path>",
                        (ROOT / "platform/compose/config/clickhouse/config.xml").read_text())[1]
    command, clickhouse = services["sweep"]["command"], services["clickhouse"]
    assert config["clickhouse"]["location"] == f"File('{allowed}/{{name}}')" and command[2] == allowed
    assert command[3].endswith(f"/user_files/{config['clickhouse']['sweep_list']}")
    assert services["sweep"]["user"] == clickhouse["user"]
    assert services["sweep"]["volumes"][0]["source"] == clickhouse["volumes"][0]["source"] == "clickhouse"
