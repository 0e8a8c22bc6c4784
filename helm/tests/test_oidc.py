"""People's way to MLflow by the chart's login proxy, with a real oauth2-proxy, a real provider of OpenID Connect (the
example server of zitadel/oidc) and a real MLflow: who is let in, as whom, and what a browser cannot forge."""
import base64
import http.client
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest
import yaml
from conftest import ROOT
from manifests import component, find, pod, workloads

HOST = "m.example.org"
PASSWORD = "a long one, for tests"
#: The provider's; MLflow knows the first alone.
PEOPLE = {"alice": "alice@example.org", "mallory": "mallory@example.org"}
LIMIT_S = 300


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Browser:
    """Follows redirects between the page's host name, which leads to the proxy, and the provider; keeps cookies."""

    def __init__(self, proxy: int):
        self.proxy, self.cookies = proxy, {}

    def ask(self, method: str, url: str, body: str = "", **headers: str) -> tuple[int, dict, str]:
        parts = urllib.parse.urlsplit(url)
        port = self.proxy if parts.hostname == HOST else parts.port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        mine = self.cookies.setdefault(parts.hostname, {})
        given = {"Host": parts.netloc, "Cookie": "; ".join(f"{k}={v}" for k, v in mine.items())} | headers
        if parts.hostname == HOST:
            given |= {"X-Forwarded-Proto": "https", "X-Forwarded-Host": HOST}
        if body:
            given["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), body or None, given)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        for line in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = line.split(";")[0].partition("=")
            mine[name] = value
        return answer.status, dict(answer.headers), text

    def follow(self, url: str) -> tuple[str, int, str]:
        """GET until it is no redirect any more: the last address, status and text."""
        for _ in range(12):
            status, headers, text = self.ask("GET", url)
            if status not in (301, 302, 303, 307):
                return url, status, text
            url = urllib.parse.urljoin(url, headers["Location"])
        raise AssertionError(f"redirects without end: {url}")

    def log_in(self, name: str) -> tuple[str, int, str]:
        """From the page by the provider's form back to the page."""
        url, status, text = self.follow(f"https://{HOST}/")
        if '/oauth2/start' in text:
            url, status, text = self.follow(f"https://{HOST}/oauth2/start?rd=%2F")
        assert status == 200 and 'name="password"' in text, (url, status, text[:500])
        (number,) = re.findall(r'name="id" value="([^"]+)"', text)
        status, headers, text = self.ask("POST", urllib.parse.urljoin(url, "/login/username"), urllib.parse.urlencode(
            {"id": number, "username": name, "password": PASSWORD}))
        assert status == 302, text[:500]
        return self.follow(urllib.parse.urljoin(url, headers["Location"]))


def started(command, log, environment: dict, url: str) -> subprocess.Popen:
    process = subprocess.Popen(list(map(str, command)), stdout=open(log, "wb"), stderr=subprocess.STDOUT,
                               start_new_session=True, env=os.environ | environment, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + LIMIT_S
    host, path = url.split("/", 3)[2], "/" + url.split("/", 3)[3]
    while True:
        try:
            connection = http.client.HTTPConnection(host, timeout=5)
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return process
        except OSError:
            pass
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.2)


@pytest.fixture(scope="module")
def proxy(chart, tmp_path_factory):
    """Port of the proxy, which has the arguments and the file of the chart's."""
    folder = tmp_path_factory.mktemp("oidc")
    tools = subprocess.run([ROOT / "platform/setup/gotool", ROOT / "helm/tests/oidc"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.strip()
    issuer_port, mlflow_port, port = free_port(), free_port(), free_port()
    objects = chart.objects("tls.enabled=false", "oidc.enabled=true", f"oidc.issuer=http://localhost:{issuer_port}/",
                            "oidc.secret=login", "oidc.clientId=web", f"pages.mlflow={HOST}",
                            "oidc.people.alice@example\\.org=owner",
                            *(f"oidc.grafana.{key}=http://localhost:{issuer_port}/{key}"
                              for key in ("authUrl", "tokenUrl", "userinfoUrl")))
    keys = folder / "keys"
    keys.mkdir()
    for name, text in (("client-secret", "secret"), ("cookie-secret", secrets.token_hex(16)),
                       ("mlflow-password", secrets.token_hex(16))):
        (keys / name).write_text(text)
        (keys / name).chmod(0o600)
    users = {name: {"ID": name, "Username": name, "Password": PASSWORD, "Email": email, "EmailVerified": True}
             for name, email in PEOPLE.items()}
    (folder / "users.json").write_text(json.dumps(users))
    (folder / "proxy.yaml").write_text(
        find(objects, "ConfigMap", "oal-oidc")["data"]["proxy.yaml"].replace(
            "0.0.0.0:4180", f"127.0.0.1:{port}").replace("oal-mlflow:5000", f"127.0.0.1:{mlflow_port}").replace(
                "/run/secrets/oal/oidc", str(keys)))
    [container] = pod(next(w for w in workloads(objects) if component(w) == "oidc"))["containers"]
    arguments = [a.replace("/run/secrets/oal/oidc", str(keys)).replace("/etc/oal/oidc", str(folder))
                 for a in container["args"]]
    # MLflow's own names of hosts, and its person, are the chart's.
    server = yaml.safe_load(find(objects, "ConfigMap", "oal-mlflow")["data"]["server.yaml"])
    (keys / "admin").write_text(secrets.token_hex(16))
    (keys / "admin").chmod(0o600)
    (folder / "server.yaml").write_text(json.dumps({
        "listen": f"127.0.0.1:{mlflow_port}", "state_dir": str(folder / "state"),
        "admin": {"user": "admin", "password_file": str(keys / "admin")},
        "users": [{"user": u["user"], "role": u["role"], "password_file": str(keys / "mlflow-password")}
                  for u in server["users"] if "oidc" in u["password_file"]],
        "allowed_hosts": server["allowed_hosts"], "allowed_origins": server["allowed_origins"]
    }))
    processes = []
    try:
        processes.append(started(
            [f"{tools}/provider", issuer_port, folder / "users.json", f"https://{HOST}/oauth2/callback"],
            folder / "provider.log", {}, f"http://127.0.0.1:{issuer_port}/.well-known/openid-configuration"))
        processes.append(started([ROOT / "model-registry/oal-registry", "server", "--config", folder / "server.yaml"],
                                 folder / "mlflow.log", {}, f"http://127.0.0.1:{mlflow_port}/health"))
        processes.append(started([f"{tools}/oauth2-proxy", *arguments], folder / "proxy.log", {},
                                 f"http://127.0.0.1:{port}/ping"))
        yield port
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


SEARCH = f"https://{HOST}/api/2.0/mlflow/experiments/search?max_results=5"


def test_nobody_reaches_mlflow_without_a_login_whatever_they_send(proxy):
    stranger = Browser(proxy)
    forged = base64.b64encode(b"alice@example.org:guessed").decode()
    for headers in ({}, {"Authorization": f"Basic {forged}"}, {"X-Forwarded-User": "alice@example.org"}):
        status, _, text = stranger.ask("GET", SEARCH, **headers)
        # The page to sign in at names the address that was asked for; what stands in an answer of MLflow is not there.
        assert status in (302, 401, 403) and "experiment_id" not in text, (headers, status, text[:300])


def test_a_person_whom_mlflow_knows_is_let_in_under_their_own_name(proxy):
    alice = Browser(proxy)
    _, status, _ = alice.log_in("alice")
    assert status == 200
    status, _, text = alice.ask("GET", SEARCH)
    assert status == 200 and "experiment_id" in text and json.loads(text)["experiments"]
    who = f"https://{HOST}/api/2.0/mlflow/users/get?username="
    assert alice.ask("GET", who + "alice%40example.org")[0] == 200
    assert alice.ask("GET", who + "admin")[0] in (401, 403), "alice is no administrator"
    # Another's name in a header of the browser's goes no further.
    forged = base64.b64encode(b"admin:guessed").decode()
    status, _, text = alice.ask("GET", who + "alice%40example.org", Authorization=f"Basic {forged}")
    assert status == 200 and json.loads(text)["user"]["username"] == "alice@example.org"


def test_a_person_whom_the_provider_alone_knows_is_refused(proxy):
    mallory = Browser(proxy)
    _, status, text = mallory.log_in("mallory")
    assert status in (401, 403), (status, text[:300])
    assert mallory.ask("GET", SEARCH)[0] in (401, 403)
