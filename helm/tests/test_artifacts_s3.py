"""MLflow's server with artifacts in S3, as the chart sets it up, with a real MLflow and a real S3 server."""
import base64
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from conftest import ROOT
from manifests import component, find, pod, workloads


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    sys.path.insert(0, str(ROOT / "platform/backup/tests"))
    from s3_store import Store
    made = Store(tmp_path_factory.mktemp("s3"), "models")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def mlflow(chart, store, tmp_path_factory):
    """The server with the environment and the secret files of the chart's pod, and the libraries of its image."""
    folder = tmp_path_factory.mktemp("mlflow")
    # A name, for which a bucket could be taken for a part of the host; of an address never.
    endpoint = store.url.replace("127.0.0.1", "localhost")
    objects = chart.objects("mlflow.artifacts=s3://models/oal", f"s3.endpoint={endpoint}", "s3.secret=store")
    workload = pod(next(w for w in workloads(objects) if component(w) == "mlflow"))
    given, made = folder / "given", folder / "made"
    for path in (given / "s3", made):
        path.mkdir(parents=True)
    (given / "s3" / "access-key").write_text(store.access)
    (given / "s3" / "secret-key").write_text(store.secret)
    init = workload["initContainers"][0]["args"][0]
    init = init.replace("/run/secrets/given", str(given)).replace("/run/secrets/oal", str(made))
    subprocess.run(["sh", "-ec", init], check=True)
    assert oct((made / "s3" / "credentials").stat().st_mode)[-3:] == "600"
    libraries = folder / "libraries"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                    "--target", libraries, "-r", ROOT / "platform/images/learning/s3.txt"], check=True)
    artifacts = find(objects, "ConfigMap", "oal-mlflow")["data"]["server.yaml"]
    assert "artifacts: s3://models/oal" in artifacts
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    (folder / "password").write_text(secrets.token_hex(16))
    (folder / "password").chmod(0o600)
    (folder / "server.yaml").write_text(json.dumps({
        "listen": url.removeprefix("http://"), "state_dir": str(folder / "state"), "artifacts": "s3://models/oal",
        "admin": {"user": "admin", "password_file": str(folder / "password")}
    }))
    environment = {e["name"]: e["value"].replace("/run/secrets/oal", str(made)) for e in
                   workload["containers"][0]["env"] if e["name"].startswith(("AWS_", "MLFLOW_"))}
    assert len(environment) == 3
    log = folder / "log"
    process = subprocess.Popen(
        [ROOT / "model-registry/oal-registry", "server", "--config", folder / "server.yaml"], stdout=open(log, "wb"),
        stderr=subprocess.STDOUT, start_new_session=True,
        env=os.environ | environment | {"PYTHONPATH": str(libraries)})
    try:
        deadline = time.monotonic() + 180
        while not answers(url):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield url, (folder / "password").read_text(), log
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(f"{url}/health", timeout=5).status == 200
    except OSError:
        return False


def call(mlflow, path: str, method: str = "GET", body: bytes | None = None) -> bytes:
    url, password, log = mlflow
    login = base64.b64encode(f"admin:{password}".encode()).decode()
    request = urllib.request.Request(url + path, method=method, data=body, headers={"Authorization": f"Basic {login}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{error}: {log.read_text()[-3000:]}") from None


def test_an_artifact_that_a_client_sends_lies_in_s3_and_comes_back(mlflow, store):
    path = "/api/2.0/mlflow-artifacts/artifacts/7/run/artifacts/model.txt"
    call(mlflow, path, "PUT", b"a tree")
    assert store.objects("oal") == ["oal/7/run/artifacts/model.txt"]
    assert (store.folder / "oal/7/run/artifacts/model.txt").read_bytes() == b"a tree"
    assert call(mlflow, path) == b"a tree"
    call(mlflow, path, "DELETE")
    assert not store.objects("oal")
