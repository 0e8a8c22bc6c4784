"""The whole local platform, looked at by somebody who has no credentials, and by those who have the wrong ones.

OAL_STATE=DIR tries it on a platform that is running.
"""
import base64
import datetime
import http.client
import os
import socket
import ssl
import stat
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest
from oal_local.errors import PlatformError
from oal_local.platform import Platform
from oal_pki.authority import Authority
from oal_pki.folder import Folder
from sockets import anyone, listeners, tree
from sockets import http as status
from verifiers import forge

PATHS = ("/", "/metrics", "/healthz", "/readyz", "/health", "/ping", "/version", "/play", "/dashboard", "/binary",
         "/merges", "/replicas_status", "/?query=SELECT+1", "/?query=SELECT+1&user=default", "/jolokia",
         "/jolokia/list", "/jolokia/read/java.lang:type=Runtime", "/overview", "/jobs/overview", "/config", "/v1/aps",
         "/v1/control/kill", "/v1/audit", "/v1/enrol", "/api/2.0/mlflow/experiments/search?max_results=1",
         "/ajax-api/2.0/mlflow/registered-models/search", "/graphql", "/webhook", "/debug/pprof/", "/signup",
         "/static-files/index.html", "/js/main.js", "/api/health", "/login")
#: What answers without credentials, and why that is well.
OPEN = {
    ("clickhouse_http", "/ping"): "health: Ok.",
    ("clickhouse_http", "/replicas_status"): "health: Ok.",
    **{("clickhouse_http", page): "a page without data, which asks for user and password and sends them with each query"
       for page in ("/", "/play", "/dashboard", "/binary", "/merges", "/ui")},
    ("mlflow", "/health"): "health: OK",
    ("mlflow",
     "/static-files/index.html"): "MLflow's own script and style files; every call of them for data is refused",
    ("model_registry", "/healthz"): "health",
    ("trainer", "/healthz"): "health",
    ("push_admin", "/healthz"): "health",
    ("push_admin", "/readyz"): "health",
    ("push_admin", "/"): "a page without data, which asks for the token and sends it with each call",
    ("grafana", "/api/health"): "health",
    ("grafana", "/login"): "the page that asks for the password",
}
REDIRECTS = {"flink_rest"}  # from http to https, whatever the path; the rest asks for a certificate


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    if running := os.environ.get("OAL_STATE"):
        yield Platform(running)
        return
    with Platform(tmp_path_factory.mktemp("platform") / "state", ports="auto", parallelism=1) as made:
        yield made


@pytest.fixture(scope="module")
def authority(platform):
    return Authority(Folder(platform.state.dir))


def manager(platform) -> int:
    return int(platform.supervisor.pid_file.read_text())


# --- what listens


def answers(port: int) -> dict[str, int]:
    """Paths that are answered to anybody, over plain text or TLS, with their status; a redirect is an answer."""
    found, ways = {}, (None, anyone())
    with ThreadPoolExecutor() as asking:  # what is no HTTP is waited for once, not four times
        tried = [[asking.submit(status, port, path, context) for path in PATHS[:2]] for context in ways]
    for context, asked in zip(ways, tried):
        if not any(code.result() for code in asked):
            continue  # no HTTP for somebody like this
        for path in PATHS:
            if 0 < (code := status(port, path, context)) < 400:
                found[path] = code
    return found


def test_nothing_answers_without_credentials_but_what_is_listed_and_all_of_it_is_on_loopback(platform):
    names = {port: name for name, port in platform.settings.ports.items()}
    seen, wrong = set(), []
    found = sorted(listeners(manager(platform)), key=lambda at: (at.kind, at.port))
    ports = sorted({listener.port for listener in found if listener.kind != "unix"})
    with ThreadPoolExecutor(len(ports)) as asking:  # each of them one question after the other; most of it is waiting
        answered = dict(zip(ports, asking.map(answers, ports)))
    for listener in found:
        if listener.kind == "unix":
            mode = os.stat(listener.address).st_mode if os.path.exists(listener.address) else 0o600 | stat.S_IFSOCK
            if mode & 0o077:
                wrong.append(f"{listener.address} has mode {stat.S_IMODE(mode):04o}")
            continue
        name = names.get(listener.port, f"port {listener.port} of process {listener.pid}")
        seen.add(name)
        if listener.address != "127.0.0.1":
            wrong.append(f"{name} listens on {listener.address}")
        for path, code in answered[listener.port].items():
            if (name, path.partition("?")[0] if "SELECT" not in path or name != "clickhouse_http" else
                    path) not in OPEN and not (name in REDIRECTS and code == 301):
                wrong.append(f"{name}{path} answers {code}")
    assert not wrong, "\n".join(wrong)
    assert {
        "kafka", "kafka_controller", "clickhouse_http", "flink_rest", "flink_rpc", "flink_blob", "taskmanager_rpc",
        "mlflow", "model_registry", "trainer", "push_ap", "push_admin", "push_enrol", "jolokia_kafka",
        "jolokia_jobmanager", "jolokia_taskmanager"
    } <= seen, "some of it was not looked at"


def test_every_figure_needs_the_token(platform):
    token = (platform.state.secrets / "metrics.token").read_text().strip()
    for name in ("trainer", "model_registry", "push_admin"):
        said = {}
        for sent in (None, "wrong", token):
            connection = http.client.HTTPConnection("127.0.0.1", platform.settings.ports[name], timeout=20)
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {sent}"} if sent else {})
            said[sent] = connection.getresponse().status
            connection.close()
        assert said == {None: 401, "wrong": 401, token: 200}, name


# --- certificates


#: What each kind of server answers whoever was let in; Kafka's: ApiVersions of version 0, length first, no client id.
QUESTION = {
    "http": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "kafka": struct.pack(">ihhih", 10, 18, 0, 1, -1),
}


def let_in(port: int, context: ssl.SSLContext, speaks: str) -> bool:
    """Does the server answer after the handshake? In TLS 1.3 a refusal of the client comes with the first read."""
    try:
        with socket.create_connection(("127.0.0.1", port),
                                      timeout=20) as plain, context.wrap_socket(plain,
                                                                                server_hostname="127.0.0.1") as channel:
            channel.sendall(QUESTION[speaks])
            return channel.recv(1) != b""
    except (ssl.SSLError, ConnectionError):
        return False


def with_files(platform, chain, key) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(platform.state.pki / "ca.crt"))
    context.load_cert_chain(chain, key)
    return context


@pytest.mark.parametrize("listener", ["kafka", "kafka_controller", "push_ap", "flink_rest"])
def test_certificates_that_lie_lapsed_or_come_from_elsewhere_are_refused(platform, authority, tmp_path, listener):
    port, speaks = platform.settings.ports[listener], "kafka" if listener.startswith("kafka") else "http"
    role = "operator" if listener == "flink_rest" else "ap"
    good = forge(authority, role, "honest", role, tmp_path / "good")
    honest = let_in(port, with_files(platform, good, good.with_suffix(".key")), speaks)
    assert honest, "the others must be refused for what they are"
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=3)
    from oal_pki import platform as pki_platform
    elsewhere = Folder(tmp_path / "elsewhere")
    pki_platform.init(elsewhere)
    wrong = {
        "expired": forge(authority, role, "late", role, tmp_path / "late", days=1, at=past),
        "of another CA": forge(Authority(elsewhere), role, "foreign", role, tmp_path / "foreign"),
    }
    if listener != "push_ap":  # Go knows no constraints on names: below
        wrong["a service by the access points' CA"] = forge(authority, "ap", "admin", "service", tmp_path / "forged")
    for what, chain in wrong.items():
        assert not let_in(port, with_files(platform, chain, chain.with_suffix(".key")), speaks), what


def push_says(platform, chain, key, path: str) -> int:
    """Status of a call of the access points' interface; 0 when not even the handshake was borne."""
    connection = http.client.HTTPSConnection("127.0.0.1", platform.settings.ports["push_ap"], timeout=20,
                                             context=with_files(platform, chain, key))
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
        return 0
    finally:
        connection.close()


def test_the_push_service_serves_each_access_point_itself_and_nobody_else(platform, authority, tmp_path):
    pki = platform.state.pki
    platform.issue_certificates("ap-one", "ap-two")
    path = "/v1/aps/{}/neighbours?site=x&frequency_mhz=5180"
    own = push_says(platform, pki / "ap-one.crt", pki / "ap-one.key", path.format("ap-one"))
    assert own not in (0, 401, 403), own
    assert push_says(platform, pki / "ap-one.crt", pki / "ap-one.key", path.format("ap-two")) == 403
    forged = forge(authority, "ap", "ap-one", "service", tmp_path)
    for chain in (pki / "trainer.crt", pki / "operator.crt", forged):
        name = "ap-one" if chain is forged else chain.stem
        assert push_says(platform, chain, chain.with_suffix(".key"), path.format(name)) in (0, 403), chain


# --- secrets


def secrets_of(platform) -> dict[str, bytes]:
    """What must be nowhere but in its file: by file, the part that nobody would write by chance."""
    found = {}
    for file in [
            *platform.state.secrets.iterdir(), *platform.state.pki.glob("*.key"), *platform.state.pki.glob("*.password")
    ]:
        text = file.read_bytes().strip()
        if b"PRIVATE KEY" in text:
            text = text.splitlines()[1]
        elif file.name == "mac-masters":
            text = text.splitlines()[-1].split()[1]
        found[file.name] = text
    assert len(found) > 20 and all(len(text) >= 24 for text in found.values())
    return found


def test_secrets_are_files_of_their_owner(platform):
    public = {".crt"}
    for folder in (platform.state.secrets, platform.state.pki):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for file in folder.iterdir():
            assert file.suffix in public or file == platform.state.trusted_keys or stat.S_IMODE(
                file.stat().st_mode) & 0o077 == 0, file


def test_no_secret_is_in_a_command_line_an_environment_or_a_log(platform):
    places = {}
    for pid in tree(manager(platform)):
        for part in ("cmdline", "environ"):
            try:
                places[f"process {pid}'s {part}"] = open(f"/proc/{pid}/{part}", "rb").read()
            except OSError:
                continue  # it ended
    for log in [*platform.state.logs.iterdir(), platform.state.clickhouse / "server.log"]:
        places[str(log)] = log.read_bytes()
    assert len(places) > 20
    # Two are taken from the environment alone, which only its user can read: the key that MLflow encrypts webhooks'
    # secrets with, and Telegraf's password for Jolokia.
    borne = {
        f"{name} in process {platform.pid(service)}'s environ"
        for name, service in (("mlflow-webhook.key", "mlflow"), ("jolokia.password", "telegraf"))
    }
    found = [f"{name} in {place}" for place, text in places.items() for name, secret in secrets_of(platform).items()
             if (secret in text or base64.b64encode(secret) in text) and f"{name} in {place}" not in borne]
    assert not found, "\n".join(found)


# --- who may what


def test_a_services_login_at_mlflow_makes_no_users_and_no_administrator(platform):
    """Roles one by one: model-registry/tests/test_server.py."""
    for path, body in (("users/create", {"username": "mallory", "password": "a good long password"}),
                       ("users/update-admin", {"username": "trainer", "is_admin": True})):
        with pytest.raises(PlatformError, match="403|PERMISSION_DENIED"):
            platform.mlflow.api(path, body, user="trainer")


def test_services_hold_no_more_of_kafka_than_they_need(platform):
    """The one table of rights: who may write what steers access points or shuts them out, and no wildcard but those of
    the viewer and the watcher of transactions. That the broker keeps to it:
    platform/local/tests/test_kafka_rights.py.
    """
    import yaml
    from oal_local.paths import KAFKA

    written = yaml.safe_load((KAFKA / "topics.yaml").read_text())["acls"]
    wide = {(who, rule.get("topic") or rule.get("group")) for who, rules in written.items() for rule in rules
            if "*" in (rule.get("topic"), rule.get("group"))}
    assert wide == {("viewer", "*"), ("transactions", "*")}
    writers = {
        topic: sorted(who for who, rules in written.items() for rule in rules
                      if rule.get("topic") == topic and "write" in rule["allow"])
        for topic in ("ap.bundles.v1", "ap.access.v1", "ap.samples.v1", "platform.events.v1")
    }
    assert writers == {
        "ap.bundles.v1": ["model-registry", "trainer"], "ap.access.v1": ["deploy"], "ap.samples.v1": ["ap"],
        "platform.events.v1": ["deploy", "lab", "model-registry", "trainer", "transactions"]
    }
    assert set(written) == {"ap", "stream-jobs", "trainer", "model-registry", "deploy", "lab", "viewer", "transactions"
                            } and "operator" not in written
