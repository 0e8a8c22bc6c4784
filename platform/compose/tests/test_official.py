"""docker-compose.yml against what the official images are made for (platform/images/official.yaml): users, programs,
folders and variables that the stand-ins of the other tests may be more patient with.
"""
import json
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest
import yaml
from docker_engine import IMAGES, OWN, ROOT, tags
from test_compose_file import compose

OFFICIAL = yaml.safe_load((IMAGES / "official.yaml").read_text())
NAMES = {"kafka": "KAFKA_IMAGE", "clickhouse": "CLICKHOUSE_IMAGE", "postgres": "POSTGRES_IMAGE",
         "grafana": "GRAFANA_IMAGE"}
POOL = tuple(f"number_of_free_entries_in_pool_to_{what}" for what in
             ("execute_mutation", "lower_max_size_of_merge", "execute_optimize_entire_partition"))
#: Asks the engine itself: the same code as the official server's, without its check at start.
ENGINE = """
import os, sys
from oal_local.clickhouse_server import load_engine
engine = load_engine()
os.chdir(sys.argv[1])
print(engine.query(sys.argv[2], "TSV", path="data"))
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture(scope="module")
def services() -> dict:
    return json.loads(compose("--profile", "*", "config", "--format", "json"))["services"]


def tmpfs(service: dict) -> list[str]:
    return [entry.split(":")[0] for entry in service.get("tmpfs", [])]


def targets(service: dict) -> list[str]:
    return [mount["target"] for mount in service.get("volumes", [])] + tmpfs(service)


def test_every_official_image_that_compose_runs_is_described(services):
    official = {s["image"] for s in services.values() if not s["image"].startswith("oal-")}
    assert official == {tags(standins=False)[name] for name in OFFICIAL}
    assert set(NAMES.values()) == set(OFFICIAL)


@pytest.mark.parametrize("name", NAMES)
def test_a_service_runs_as_the_user_whom_the_image_is_made_for(services, name):
    assert services[name]["user"] == OFFICIAL[NAMES[name]]["user"]
    secrets = yaml.safe_load((ROOT / "platform/compose/secrets.yaml").read_text())["services"]
    assert secrets[name]["uid"] == int(OFFICIAL[NAMES[name]]["user"].split(":")[0])


@pytest.mark.parametrize("name", NAMES)
def test_every_program_that_is_called_is_in_the_image(services, name):
    service, said = services[name], OFFICIAL[NAMES[name]]
    mine = {mount["target"]: mount["source"] for mount in service.get("volumes", []) if mount["type"] == "bind"}
    called = [service["healthcheck"]["test"][1]]
    if service.get("entrypoint"):
        called.append(service["entrypoint"][0])
    elif service.get("command"):
        assert said["command"] and service["command"][0] == said["command"][0], "the entry point goes by that name"
    for program in list(called):
        if program in mine:
            text = (ROOT / mine[program]).read_text()
            called += [re.match(r"#!(?:/usr/bin/env |/bin/)(\S+)", text)[1], *re.findall(r"/opt/\S+\.sh", text)]
            called.remove(program)
    assert set(called) <= set(said["programs"]), name


@pytest.mark.parametrize("name", NAMES)
def test_what_the_image_writes_is_a_volume_or_a_tmpfs(services, name):
    service, said = services[name], OFFICIAL[NAMES[name]]
    read_only = {m["target"] for m in service.get("volumes", []) if m.get("read_only")}
    for folder in said["writes"]:
        assert folder in set(targets(service)) - read_only, f"{name} cannot write {folder}"


def test_no_service_leaves_volumes_without_a_name(services):
    """A VOLUME of an image that nothing is mounted on becomes a new one at every `up`, and nobody removes it."""
    volumes = {tags(standins=False)[name]: said["volumes"] for name, said in OFFICIAL.items()}
    for own in OWN:
        text = (IMAGES / own / "Dockerfile").read_text()
        volumes[tags()[f"OAL_{own.replace('-', '_').upper()}_IMAGE"]] = re.findall(r"^VOLUME (\S+)", text, re.M)
    for name, service in services.items():
        assert set(volumes[service["image"]]) <= set(targets(service)), name


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_is_one_that_the_image_reads(services, name):
    said = OFFICIAL[NAMES[name]]
    environment = services[name].get("environment") or {}
    for variable in environment:
        assert re.fullmatch(said["environment"], variable), f"{name}: nothing reads {variable}"
    for variable, value in said.get("must_set", {}).items():
        assert environment[variable] == value, name


@pytest.mark.parametrize("name", NAMES)
def test_published_ports_are_ones_that_are_listened_on(services, name):
    """By the image as it is, or by our configuration (Kafka's listeners, which test_compose_file leaves to it)."""
    ours = {"kafka": {9094}}.get(name, set())
    assert {int(p["target"]) for p in services[name].get("ports", [])} <= set(OFFICIAL[NAMES[name]]["ports"]) | ours
    if ours:
        listeners = (ROOT / "platform/compose/config/kafka/over.properties").read_text()
        assert all(f":{port}" in listeners for port in ours)


def test_scripts_for_the_entry_point_are_run_and_not_read(services):
    folder = OFFICIAL["POSTGRES_IMAGE"]["scripts"]
    scripts = [m["source"] for m in services["postgres"]["volumes"] if m["target"].startswith(folder + "/")]
    assert scripts
    for script in scripts:
        mode = subprocess.run(["git", "-C", ROOT, "ls-files", "-s", script], capture_output=True, text=True, check=True)
        assert mode.stdout.startswith("100755"), f"{script} is not executable: {mode.stdout}"


def test_chart_and_compose_install_the_same_plugin(services):
    values = yaml.safe_load((ROOT / "helm/oal/values.yaml").read_text())
    assert values["grafana"]["plugins"] == services["grafana"]["environment"]["GF_INSTALL_PLUGINS"]
    assert re.fullmatch(r"[a-z-]+ \d+\.\d+\.\d+", values["grafana"]["plugins"])


def effective(config: xml.Element) -> dict[str, int]:
    """The three numbers of free entries by this configuration; where it is silent, the server's own."""
    own = dict(zip(POOL, (20, 8, 25), strict=True))
    return {name: int(config.findtext(f"merge_tree/{name}", own[name])) for name in POOL}


def engine(folder, pool: str, query: str) -> subprocess.CompletedProcess:
    (folder / "data").mkdir(parents=True)
    (folder / "config.xml").write_text(f"<clickhouse><path>data/</path><background_pool_size>{pool}"
                                       "</background_pool_size><log-level>error</log-level></clickhouse>")
    return subprocess.run([sys.executable, "-c", ENGINE, folder, query], capture_output=True, text=True, timeout=120,
                          env={"PYTHONPATH": str(ROOT / "platform/local/src"), "PATH": "/usr/bin:/bin"})


def test_clickhouse_would_start_with_this_pool(tmp_path):
    """The official server checks the three numbers against its pool before it starts; the engine here checks a table's
    own, with the same words.
    """
    config = xml.parse(ROOT / "platform/compose/config/clickhouse/config.xml").getroot()
    pool, numbers = config.findtext("background_pool_size"), effective(config)
    make = "CREATE DATABASE d; CREATE TABLE d.t (a Int8) ENGINE = MergeTree ORDER BY a SETTINGS {}; SELECT 'made'"
    settings = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    made = engine(tmp_path / "ours", pool, make.format(settings))
    assert "made" in made.stdout, made.stderr
    # and it is this check: the server's own numbers, or a pool's worth and one, are refused
    refused = engine(tmp_path / "its", pool, make.format(f"{POOL[0]} = 20"))
    assert "background_pool_size" in refused.stdout + refused.stderr and "made" not in refused.stdout


def test_the_images_themselves_can_be_asked():
    """`platform/images/official` finds what official.yaml says in an image's configuration, and what it does not."""
    asked = runpy.run_path(str(IMAGES / "official"))
    said = OFFICIAL["POSTGRES_IMAGE"]
    config = {"User": "", "Entrypoint": ["docker-entrypoint.sh"], "Cmd": ["postgres"], "ExposedPorts": {"5432/tcp": {}},
              "Volumes": {"/var/lib/postgresql/data": {}}}
    assert asked["differences"]("postgres", said, config) == []
    for change in ({"User": "70:70"}, {"Entrypoint": None}, {"Cmd": ["bash"]}, {"Volumes": {"/data": {}}},
                   {"ExposedPorts": None}):
        assert len(asked["differences"]("postgres", said, config | change)) == 1, change
    assert set(asked["tags"]("tags.env")) > set(OFFICIAL)
