"""One real MLflow server and one real Kafka broker for the session."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [
    str(HERE),
    str(HERE.parent / "src"),
    str(HERE.parents[1] / "schema" / "src"),
    str(HERE.parents[1] / "training" / "src"),
    str(HERE.parents[1] / "platform" / "local" / "src"),
]


def pytest_configure(config):
    config.addinivalue_line("markers", "server: needs MLflow or Kafka; `make check` leaves it out")
    config.addinivalue_line("markers", "outage: something is killed or away; `make test-outages` runs it alone")


def pytest_collection_modifyitems(items):
    """Tests that need a server are marked `server`."""
    for item in items:
        if {"starting_mlflow", "kafka"} & set(item.fixturenames):
            item.add_marker("server")


@pytest.fixture(scope="session")
def folder():
    kept = os.environ.get("OAL_TEST_STATE")  # set it to look at the logs afterwards
    with tempfile.TemporaryDirectory(prefix="oal-registry-test-", ignore_cleanup_errors=True) as made:
        yield Path(kept or made)


@pytest.fixture(scope="session")
def starting_mlflow(folder):
    """Begins to start; `mlflow` is the same when it is ready. So Kafka can start meanwhile."""
    from processes import MlflowServer

    server = MlflowServer(folder / "mlflow")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mlflow(starting_mlflow):
    starting_mlflow.wait_ready()
    return starting_mlflow


@pytest.fixture(scope="session")
def kafka(folder, starting_mlflow):
    from oal_local.platform import Platform

    with Platform(folder / "platform", ports="auto", only=["kafka"], partitions=2) as running:
        yield running.kafka


@pytest.fixture(scope="session")
def owner(mlflow):
    from owner import Owner

    return Owner(mlflow.url, "owner", mlflow.passwords["owner"])


@pytest.fixture(scope="session")
def admin(mlflow):
    """Calls MLflow's REST interface as an admin: what the registry writes of releases, owners may not change."""
    import requests

    def call(path: str, body: dict) -> None:
        method = "DELETE" if path.endswith("delete-tag") else "POST"
        answer = requests.request(method, f"{mlflow.url}/api/2.0/mlflow/{path}", json=body, timeout=20,
                                  auth=("admin", mlflow.passwords["admin"]))
        answer.raise_for_status()

    return call


@pytest.fixture(scope="session")
def signing_key(folder):
    from oal_schema import keys

    path = folder / "signing.pem"
    keys.make(path)
    return path


@pytest.fixture(scope="session")
def trusted(signing_key):
    from oal_schema import keys
    from oal_schema.grant import grant

    key = keys.load(signing_key)
    return {keys.key_id(key): keys.TrustedKey(key.public_key(), "test", grant("registry"))}


@pytest.fixture(scope="session")
def topics(kafka):
    from topics import Topics

    made = Topics(kafka.client("viewer"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def behaviour(folder):
    """File that tells the training command of the tests what to do; see tiny_train.py."""
    path = folder / "behaviour"
    path.write_text("again")
    return path


@pytest.fixture(scope="session")
def service(folder, starting_mlflow, kafka, signing_key, behaviour):
    """`oal-registry serve`. It may be killed and started again by a test."""
    from processes import RegistryService

    command = [sys.executable, str(HERE / "tiny_train.py"), str(behaviour)]
    made = RegistryService(folder / "registry", starting_mlflow, kafka.client("model-registry"), signing_key, command)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def versions(owner):
    """Three good versions of `congestion`."""
    return [owner.register(seed) for seed in (1, 2, 3)]


@pytest.fixture
def running(service, versions, mlflow):
    """Everything is up when a test begins."""
    if mlflow.ended():
        mlflow.start()
        mlflow.wait_ready()
    if service.ended():
        service.start()
    service.wait_ready()


@pytest.fixture
def clean(owner, admin, topics, service, running):
    """No alias, nothing in force, afterwards: without history, a deleted alias empties its slot."""
    from waiting import until

    yield
    if service.ended():
        service.start()
        service.wait_ready()
    if (now := topics.in_force("champion")) is not None:
        # So that the alias governs it, whatever the test left.
        owner.alias("champion", now.version)
        service.passes()
    for version in owner.client.search_model_versions("name='congestion'"):
        for tag in version.tags:
            if tag.startswith("oal.released_at."):
                admin("model-versions/delete-tag", {"name": "congestion", "version": version.version, "key": tag})
    slots = ("champion", "canary", "challenger")
    for slot in slots:
        owner.unalias(slot)
    until(lambda: not any(topics.in_force(slot) for slot in slots), "all slots are empty")
