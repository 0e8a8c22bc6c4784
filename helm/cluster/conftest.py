import json
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from fake_nodes import FakeNodes  # noqa: E402

INSTALLED: dict[str, float] = {}  # values → seconds of `helm install --wait --wait-for-jobs`
STARTED = time.monotonic()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    control_plane = FakeNodes(tmp_path_factory.mktemp("cluster"))
    try:
        yield control_plane.start()
    finally:
        control_plane.stop()


@pytest.fixture
def namespace(cluster, request):
    """A namespace in which the API server itself refuses what is not restricted."""
    name = request.node.name.replace("_", "-").replace("[", "-").replace("]", "").replace(".",
                                                                                          "-").lower()[-50:].strip("-")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {
        "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}}})
    cluster.wait("the namespace has its account",
                 lambda: cluster.kubectl("-n", name, "get", "serviceaccount", "default", check=False))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def pytest_terminal_summary(terminalreporter):
    for values, seconds in INSTALLED.items():
        terminalreporter.write_line(f"helm install --wait --wait-for-jobs, {values}: {seconds:.1f} s")
    terminalreporter.write_line(f"test-cluster: {time.monotonic() - STARTED:.0f} s in all, control plane included")
    if INSTALLED:
        folder = ROOT / "build" / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "helm-install.json"
        # Of a part of the tests only its own figures are new.
        earlier = [
            f for f in (json.loads(file.read_text()) if file.exists() else [])
            if f["name"].removeprefix("helm-install-") not in INSTALLED
        ]
        file.write_text(
            json.dumps(
                earlier
                + [
                    {
                        "name": f"helm-install-{values}",
                        "value": round(seconds, 1),
                        "unit": "s",
                        "command": "make test-cluster",
                        "note": (
                            "helm install --wait --wait-for-jobs; real API server and controllers, five fake nodes"
                            " whose pods become ready at once"
                        ),
                    }
                    for values, seconds in INSTALLED.items()
                ],
                indent=1,
            )
            + "\n"
        )
