"""The configuration by itself: it is sound, what it needs is listed, and what is missing or wrong is named."""
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import FOLDER
from oal_local import telegraf

ENTRY = FOLDER / "oal-telegraf"
PARTS = sorted(path.stem for path in (FOLDER / "telegraf.d").glob("*.conf"))
README = (FOLDER / "README.md").read_text()


@pytest.fixture(scope="session")
def program() -> str:
    return telegraf.program()


@pytest.fixture
def variables(tmp_path, program) -> dict[str, str]:
    """All of them, as a deployment with two brokers would set them."""
    for name in ("clickhouse", "jolokia", "metrics"):
        (tmp_path / name).write_text(f"{name}-secret")
    subprocess.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=ca",
        "-keyout",
        str(tmp_path / "ca.key"), "-out",
        str(tmp_path / "ca.crt")
    ], check=True, capture_output=True)
    return {
        "TELEGRAF": program,
        "PATH": os.environ["PATH"],
        "OAL_WATCH": " ".join(PARTS),
        "OAL_TELEGRAF_STATE": str(tmp_path / "state"),
        "OAL_CLICKHOUSE_URL": "http://clickhouse:8123",
        "OAL_CLICKHOUSE_PASSWORD_FILE": str(tmp_path / "clickhouse"),
        "OAL_JOLOKIA_PASSWORD_FILE": str(tmp_path / "jolokia"),
        "OAL_METRICS_TOKEN_FILE": str(tmp_path / "metrics"),
        "OAL_CA_FILE": str(tmp_path / "ca.crt"),
        "OAL_KAFKA_JOLOKIA_URLS": "http://kafka-0.kafka:8778,http://kafka-1.kafka:8778",
        "OAL_JOBMANAGER_JOLOKIA_URLS": "http://jobmanager:8778",
        "OAL_TASKMANAGER_JOLOKIA_URLS": "http://taskmanager-0:8778",
        "OAL_MLFLOW_URLS": "http://mlflow:5000",
        "OAL_TRAINER_URLS": "http://trainer:5002",
        "OAL_REGISTRY_URLS": "http://model-registry:5001",
        "OAL_PUSH_URLS": "https://push-0:8444",
        "OAL_GRAFANA_URLS": "http://grafana:3000",
        "OAL_CERTIFICATES": "tcp://kafka-0.kafka:9094,/run/secrets/oal/pki/*.crt",
    }


def run(variables: dict, command: str = "check") -> subprocess.CompletedProcess:
    return subprocess.run([str(ENTRY), command], env=variables, capture_output=True, text=True, timeout=60)


def test_it_is_sound_with_every_part(variables):
    done = run(variables)
    assert done.returncode == 0, done.stderr
    assert "Deprecat" not in done.stderr and "deprecated" not in done.stderr


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_sound_alone(variables, part):
    done = run(variables | {"OAL_WATCH": part})
    assert done.returncode == 0, done.stderr


def test_a_configuration_that_is_not_sound_is_refused(variables, tmp_path):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(FOLDER), str(copy)], check=True)
    with open(copy / "telegraf.d" / "host.conf", "a") as conf:
        conf.write("[[inputs.mem]]\n  no_such_option = 1\n")
    done = subprocess.run([str(copy / "oal-telegraf"), "check"], env=variables, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode != 0 and "no_such_option" in done.stdout + done.stderr


def test_every_plugin_that_is_built_is_used_and_the_other_way_round():
    text = "".join(path.read_text() for path in [FOLDER / "telegraf.conf", *(FOLDER / "telegraf.d").glob("*.conf")])
    used = set(re.findall(r"^\[\[((?:inputs|outputs|secretstores)\.\w+)\]\]", text, re.M))
    used |= {f"parsers.{name}" for name in re.findall(r'data_format = "(\w+)"', text)} | {"serializers.json"}
    built = {line for line in (FOLDER / "plugins.txt").read_text().splitlines() if not line.startswith("#")}
    assert used == built


@pytest.mark.parametrize("name", [
    "OAL_CLICKHOUSE_URL", "OAL_TELEGRAF_STATE", "OAL_CLICKHOUSE_PASSWORD_FILE", "OAL_JOLOKIA_PASSWORD_FILE",
    "OAL_METRICS_TOKEN_FILE", "OAL_KAFKA_JOLOKIA_URLS", "OAL_JOBMANAGER_JOLOKIA_URLS", "OAL_TASKMANAGER_JOLOKIA_URLS",
    "OAL_MLFLOW_URLS", "OAL_TRAINER_URLS", "OAL_REGISTRY_URLS", "OAL_PUSH_URLS", "OAL_GRAFANA_URLS", "OAL_CERTIFICATES"
])
def test_a_missing_variable_is_named(variables, name):
    del variables[name]
    done = run(variables)
    assert done.returncode == 2 and f"${name} is not set" in done.stderr


@pytest.mark.parametrize("name, value, message", [
    ("OAL_WATCH", "host kafak", "there is no `kafak`; there are"),
    ("OAL_CLICKHOUSE_URL", "clickhouse:8123", "is not an HTTP URL"),
    ("OAL_KAFKA_JOLOKIA_URLS", "kafka-0:8778", "is not a URL"),
    ("OAL_PUSH_URLS", 'http://a"]\ncommand = ["/bin/sh', "quotes"),
    ("OAL_MLFLOW_URLS", "http://a/$(id)", "characters"),
    ("OAL_TELEGRAF_BUFFER", "many", "is not a number of rows"),
    ("OAL_CLICKHOUSE_DATABASE", "oal;DROP", "no database's name"),
    ("OAL_JOLOKIA_PASSWORD_FILE", "/no/such/file", "cannot be read"),
    ("OAL_CA_FILE", "/no/such/file", "cannot be read"),
])
def test_a_wrong_value_is_named(variables, name, value, message):
    done = run(variables | {name: value})
    assert done.returncode == 2 and name in done.stderr and message in done.stderr, done.stderr


@pytest.mark.parametrize("content, message", [("", "is empty"), ("secret\n", "without an end of line")])
def test_a_secret_is_the_whole_file(variables, tmp_path, content, message):
    (tmp_path / "clickhouse").write_text(content)
    done = run(variables)
    assert done.returncode == 2 and message in done.stderr and "secret\n" not in done.stderr


def test_a_password_that_kubelet_replaces_is_still_found(variables, tmp_path):
    """A projected volume: the file's name leads by ..data to a folder with a time in its name, which goes."""
    volume = tmp_path / "volume"
    for folder, password in (("..first", "old"), ("..second", "new")):
        (volume / folder).mkdir(parents=True)
        (volume / folder / "telegraf").write_text(password)
    (volume / "..data").symlink_to("..first")
    (volume / "telegraf").symlink_to("..data/telegraf")
    variables["OAL_CLICKHOUSE_PASSWORD_FILE"] = str(volume / "telegraf")
    assert run(variables).returncode == 0
    link = Path(variables["OAL_TELEGRAF_STATE"]) / "secrets" / "clickhouse"
    assert link.read_text() == "old"
    (volume / "..data").unlink()
    (volume / "..data").symlink_to("..second")
    shutil.rmtree(volume / "..first")
    assert link.read_text() == "new"


def test_the_readme_lists_the_variables_and_no_others():
    read = set(re.findall(r"\bOAL_[A-Z_]+\b", ENTRY.read_text())) - {"OAL_JOLOKIA_PASSWORD"}
    assert set(re.findall(r"`(OAL_[A-Z_]+)`", README)) == read
    conf = "".join(path.read_text() for path in [FOLDER / "telegraf.conf", *(FOLDER / "telegraf.d").glob("*.conf")])
    made = set(re.findall(r'\blist ([A-Z_]+) ', ENTRY.read_text())) | read | {"OAL_JOLOKIA_PASSWORD"}
    assert set(re.findall(r"\$\{(\w+)\}", conf)) <= made


def test_access_to_jolokia_is_to_read_only():
    text = (FOLDER / "jolokia" / "access.xml").read_text()
    assert set(re.findall(r"<command>(\w+)</command>", text)) == {"read", "version"}


def test_rows_that_do_not_fit_the_buffer_are_dropped_and_counted(variables, tmp_path):
    """Without a ClickHouse: a buffer of 10 rows overflows at the second reading, and Telegraf says how many are gone.
    """
    done = subprocess.Popen(
        [str(ENTRY)], env=variables | {
            "OAL_WATCH": "host", "OAL_TELEGRAF_BUFFER": "10", "OAL_TELEGRAF_INTERVAL": "1s",
            "OAL_CLICKHOUSE_URL": "http://127.0.0.1:9"
        }, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        line = next(line for line in done.stderr if "dropped" in line.lower())
        assert re.search(r"\d+", line), line
    finally:
        done.terminate()
        done.wait(30)
    print(line, file=sys.stderr)


@pytest.fixture
def servers():
    """Two that take ClickHouse's place: each says of every table how many rows it has, 1 and 2, and keeps what it was
    asked.
    """
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.server.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.answer(f'[{{"table":"gap","disk":"default","error":"NONE","rows":{self.server.rows}}}]')

        def do_GET(self):
            self.answer("Ok.\n")

        def answer(self, text: str):
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    both = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in (1, 2)]
    for rows, server in enumerate(both, 1):
        server.rows, server.asked = rows, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield both
    for server in both:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("between", [" ", ",", ""])
def test_of_several_servers_each_is_asked_and_each_row_says_which(variables, servers, between):
    """Without a list the one is asked that rows go to."""
    urls = [f"http://127.0.0.1:{server.server_port}" for server in servers]
    done = run(
        variables | {
            "OAL_WATCH": "clickhouse", "OAL_CLICKHOUSE_URL": urls[0], "OAL_CLICKHOUSE_URLS": between
            and between.join(urls), "OAL_CA_FILE": ""
        }, "test")
    assert done.returncode == 0, done.stderr
    for name in ("clickhouse", "clickhouse_table", "clickhouse_disk", "clickhouse_error"):
        rows = dict(re.findall(rf"^> {name},\S*url=([^/]+//[^/,]+)/\S* .*\brows=(\d)", done.stdout, re.M))
        assert rows == {url: str(n) for n, url in enumerate(urls[:2 if between else 1], 1)}, done.stdout
    assert len(re.findall(r"^> health,.*result_code=0i", done.stdout, re.M)) == (2 if between else 1)


def test_rows_of_tables_are_those_of_a_single_server_or_of_its_share(variables, servers):
    """What spreads over the servers of a cluster has no parts, so nothing counts twice."""
    run(
        variables | {
            "OAL_WATCH": "clickhouse", "OAL_CLICKHOUSE_URL": f"http://127.0.0.1:{servers[0].server_port}",
            "OAL_CLICKHOUSE_DATABASE": "wifi"
        }, "test")
    [asked] = [sql for sql in servers[0].asked if "system.parts" in sql]
    assert "database IN ('wifi', 'wifi_shard')" in asked and "GROUP BY table, database, partition_id" in asked


@pytest.mark.parametrize("deployment", ["docker-compose.yml", "helm/oal/templates/telegraf.yaml"])
def test_other_deployments_set_what_the_entry_point_knows_and_needs(deployment):
    text = (FOLDER.parent.parent / deployment).read_text()
    if deployment == "docker-compose.yml":
        text = re.search(r"^  telegraf:\n(.*?)(?=^  \w|^\w)", text, re.M | re.S).group(1)
    given = set(re.findall(r"\b(OAL_[A-Z_]+)\b[\"']?(?:: | \()", text)) | set(re.findall(r"\"(OAL_[A-Z_]+)\"", text))
    known = set(re.findall(r"`(OAL_[A-Z_]+)`", README))
    needed = {
        "OAL_CLICKHOUSE_URL", "OAL_CLICKHOUSE_PASSWORD_FILE", "OAL_JOLOKIA_PASSWORD_FILE", "OAL_METRICS_TOKEN_FILE",
        "OAL_KAFKA_JOLOKIA_URLS", "OAL_JOBMANAGER_JOLOKIA_URLS", "OAL_TASKMANAGER_JOLOKIA_URLS"
    }
    assert needed <= given, needed - given
    assert given <= known, given - known
