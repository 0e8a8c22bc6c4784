"""Each component's own reader takes the configuration that the chart writes for it."""
import os
import re
import subprocess

import pytest
from conftest import ROOT
from manifests import find

# What a key file or folder of the pod stands for here.
READERS = {
    "trainer": ("online.yaml", "from oal_training.online import config; print(config.load(sys.argv[1]).listen)"),
    "registry": ("registry.yaml",
                 "from oal_registry.service import ServiceConfig; print(ServiceConfig.load(sys.argv[1]).poll_s)"),
    "mlflow": ("server.yaml",
               "from oal_registry.server import ServerConfig; print(ServerConfig.load(sys.argv[1]).database_uri)"),
}


def moved(text: str, folder) -> str:
    """The same with its files below FOLDER."""
    secrets, state = folder / "secrets", folder / "state"
    secrets.mkdir(exist_ok=True)
    for name in ("mlflow-admin", "mlflow-trainer", "mlflow-model-registry"):
        (secrets / f"{name}.password").write_text("long enough to be taken")
        (secrets / f"{name}.password").chmod(0o600)
    return text.replace("/run/secrets/oal/secrets",
                        str(secrets)).replace("/var/lib/oal", str(state)).replace("/etc/oal/policies",
                                                                                  str(ROOT / "policies/in-force"))


@pytest.mark.parametrize("component", READERS)
def test_python_services_take_their_configuration(chart, component, tmp_path):
    key, program = READERS[component]
    file = tmp_path / key
    file.write_text(moved(find(chart.objects(), "ConfigMap", f"oal-{component}")["data"][key], tmp_path))
    venv = subprocess.run([ROOT / "platform/setup/venv", ROOT / "training/requirements.txt"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    path = ":".join(str(ROOT / folder / "src") for folder in ("training", "model-registry", "schema"))
    done = subprocess.run([f"{venv}/bin/python", "-c", f"import sys; {program}",
                           str(file)], capture_output=True, text=True, env={"PYTHONPATH": path, "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    if component == "mlflow":
        assert done.stdout.startswith(
            "postgresql+psycopg2://mlflow@oal-postgres:5432/mlflow?passfile=") and "password" not in done.stdout


@pytest.fixture(scope="session")
def oal_deploy(tmp_path_factory):
    program = tmp_path_factory.mktemp("bin") / "oal-deploy"
    subprocess.run(["go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/oal-deploy"],
                   cwd=ROOT / "deploy", check=True, env=os.environ | {"CGO_ENABLED": "0"})
    return program


@pytest.mark.parametrize("values", [(), ("fleet", ), ("push.store=file", ),
                                    ("push.enrol.enabled=false", "push.adminUsersSecret=people")], ids=str)
def test_the_push_service_takes_its_configuration(chart, oal_deploy, values, tmp_path):
    """`check` reads the file before anything that it names: past that it misses those, which are not here."""
    file = tmp_path / "deploy.yaml"
    text = find(chart.objects(*values), "ConfigMap",
                "oal-push")["data"]["deploy.yaml"].replace("/var/lib/oal/push", str(tmp_path))
    file.write_text(text)
    said = subprocess.run([oal_deploy, "check", "--config", file], capture_output=True, text=True)
    assert "oal-deploy: configuration" not in said.stderr and re.search(
        "/run/secrets/oal/.*no such file|/etc/oal/push/dsn: no such file", said.stderr + said.stdout), said.stderr
    file.write_text(text + "colour: red\n")
    said = subprocess.run([oal_deploy, "check", "--config", file], capture_output=True, text=True)
    assert said.returncode != 0 and "colour" in said.stderr
