"""Each own image, built here, as a container that may do nothing: another user than root, no capability, a file system
that cannot be written.
"""
import json
import os
import re
import sys
import time
import uuid

import pytest
from docker_engine import IMAGES, OWN, ROOT, build, run, tags

SAFE = ("--rm", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "none",
        "--tmpfs", "/tmp", "--pids-limit", "256", "--memory", "1g")
#: What it says of itself, and a word of that.
ANSWERS = {
    "push": (["--help"], "oal-deploy serve"),
    "learning": (["oal-registry", "--help"], "server"),
    "stream-jobs": (["help"], "taskmanager"),
    "setup": (["oal-setup"], "migrate"),
    "telegraf": (["check"], "OAL_CLICKHOUSE_URL"),
    "exporter": (["--help"], "check-config"),
}
MORE = [
    ("learning", ["oal-train", "--help"], "online"),
    ("setup", ["oal-ca", "--help"], "init"),
    ("setup", ["topics", "--help"], "PARTITIONS"),
    ("setup", ["transactions", "--help"], "--older"),
    ("setup", ["migrate", "--help"], "--password-file"),
    ("setup", ["oal-backup", "--help"], "restore"),
    # of the server's version
    ("setup", ["pg_dump", "--version"], f" {tags()['POSTGRES_IMAGE'].rpartition(':')[2].split('.')[0]}.")
]
MEGABYTES = {"push": 200, "learning": 1100, "stream-jobs": 700, "setup": 300, "telegraf": 300, "exporter": 250}


@pytest.mark.parametrize("name", OWN)
def test_runs_as_nobody_without_rights_and_answers(engine, image, name):
    arguments, word = ANSWERS[name]
    said = engine.docker("run", *SAFE, image[name], *arguments, check=name != "telegraf")
    assert word in said
    who = engine.docker("run", *SAFE, "--entrypoint", "id", image[name])
    assert "uid=10001(oal) gid=10001(oal)" in who


@pytest.mark.parametrize(("name", "arguments", "word"), MORE, ids=lambda v: v if isinstance(v, str) else v[0])
def test_every_command_of_an_image_answers(engine, image, name, arguments, word):
    assert word in engine.docker("run", *SAFE, image[name], *arguments)


def test_every_kind_of_model_loads_where_it_is_fitted(engine, image):
    """Wheels leave some libraries to the system."""
    said = engine.docker(
        "run", *SAFE, "-e", "PYTHONPATH=/opt/oal/training/src:/opt/oal/schema/src", image["learning"],
        "/opt/oal/venv/bin/python", "-c", "import xgboost; from oal_training.batch.models import FACTORIES;"
        " print({name: str(make({}, 0)) for name, (make, *_) in FACTORIES.items()})", timeout=300)
    assert "LGBMClassifier" in said, said


@pytest.mark.parametrize("name", OWN)
def test_says_what_it_is_and_how_it_is(engine, image, name):
    made = engine.inspect(image[name])
    labels = made["Config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == f"oal-{name}"
    for label in ("description", "version", "revision"):
        assert labels[f"org.opencontainers.image.{label}"], label
    assert made["Config"]["User"] == "10001:10001"
    assert made["Config"]["Healthcheck"]["Test"][0] == ("NONE" if name == "setup" else
                                                        "CMD-SHELL" if name == "telegraf" else "CMD")
    megabytes = made["Size"] / 1e6
    print(f"\n  oal-{name:<12} {megabytes:6.0f} MB in {len(made['RootFS']['Layers'])} layers")
    assert megabytes <= MEGABYTES[name]


@pytest.mark.parametrize("name", OWN)
def test_holds_no_secret_and_nothing_of_the_machine_that_built_it(engine, image, name):
    made = engine.inspect(image[name])
    history = engine.docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", image[name])
    told = json.dumps(made["Config"]) + history
    assert not re.search(r"(?i)(password|passwd|token|api_?key|secret)=\S", told)
    assert not re.search(r"(?i)https?_proxy=|/work/|/home/|/root/", told)
    # Private keys, what package managers fetched, sources and tools of the builder, a foreign CA beside Debian's.
    found = engine.docker(
        "run",
        *SAFE,
        "--user",
        "0:0",
        "--cap-add",
        "DAC_READ_SEARCH",
        "--entrypoint",
        "sh",
        image[name],
        "-c",
        "find / -xdev -not -type l \\( -name '*.pem' -o -name '*.key' -o -name id_rsa -o -name .git -o -name .netrc -o"
        " -name pip.conf -o -name settings.xml \\) -not -path '/proc/*' -not -path '/etc/ssl/certs/*' -not -path"
        " '*/certifi/cacert.pem' -not -path '*/site-packages/*' -not -path '/usr/share/*' -not -path '/etc/maven/*'; ls"
        " -d /src /usr/local/go /root/.m2 /root/.cache /root/go 2>/dev/null; true",
    ).split()
    assert found == []


def test_no_image_has_the_builders_authorities(engine, image):
    """A company's CA, which the builders may trust, is not trusted by what they make."""
    base = engine.docker("run", *SAFE, "--entrypoint", "sha256sum", "oal-base/debian:bookworm",
                         "/etc/ssl/certs/ca-certificates.crt").split()[0]
    for name in OWN:
        assert engine.docker("run", *SAFE, "--entrypoint", "sha256sum", image[name],
                             "/etc/ssl/certs/ca-certificates.crt").split()[0] == base, name


def test_stand_ins_are_made_like_the_official_images(engine, image):
    """Users, volumes and ports: what runs on a stand-in of another shape says nothing of the official image."""
    build("kafka", "clickhouse", "postgres")
    said = run(sys.executable, IMAGES / "official", "--standins").stdout
    assert "the images are as official.yaml says" in said, said


def test_an_image_that_was_built_without_a_revision_has_the_checkouts(engine, image, tmp_path):
    """As Compose builds it on a fresh clone."""
    run("git", "clone", "-q", ROOT, tmp_path / "clone")
    revision = run("git", "-C", tmp_path / "clone", "rev-parse", "HEAD").stdout.strip()
    words = [word for name, value in tags().items() if name.startswith("PYTHON_") for word in
             ("--build-arg", f"{name}={value}")]
    engine.docker("build", "-q", "-t", "oal-test/learning:revision", "-f", IMAGES / "learning" / "Dockerfile", *words,
                  tmp_path / "clone", timeout=1800)
    try:
        for program in ("oal-train", "oal-registry"):
            said = engine.docker("run", *SAFE, "--entrypoint", "sh", "oal-test/learning:revision", "-c",
                                 f"sh -x /usr/local/bin/{program} --help 2>&1")
            assert f"OAL_GIT_REVISION={revision}" in said
    finally:
        engine.docker("image", "rm", "-f", "oal-test/learning:revision", check=False)


def healthy(engine, name: str, seconds: int = 120) -> None:
    deadline = time.monotonic() + seconds
    while (state := engine.inspect(name)["State"])["Health"]["Status"] != "healthy":
        assert state["Running"] and time.monotonic() < deadline, f"{state} {engine.docker('logs', name)[-2000:]}"
        time.sleep(0.5)


def started(engine, request, image: str, folder, *arguments) -> str:
    """A container with FOLDER as /etc/oal, which ends with the test."""
    name = f"oal-test-{uuid.uuid4().hex[:8]}"
    request.addfinalizer(lambda: engine.docker("rm", "-f", "-v", name, check=False))
    folder.chmod(0o755)
    engine.docker("run", "-d", "--name", name, *SAFE[1:], "-v", f"{folder}:/etc/oal:ro", image, *arguments)
    return name


def test_exporter_replays_and_is_healthy(engine, image, request, tmp_path):
    (tmp_path / "ap-exporter").write_text(
        "config exporter\n\toption ap_id 'ap-test'\n\toption status_socket '/tmp/s'\nconfig replay\n\toption file"
        " '/usr/share/oal/captures/congested.oalcap'\nconfig file\n\toption path '/var/lib/oal/made.oalcap'\n"
    )
    healthy(engine, started(engine, request, image["exporter"], tmp_path))


def test_exporter_has_the_agent_of_hosts_with_its_congestion_controls(engine, image, tmp_path):
    """Here it may do nothing, and says what it lacks; the chart's pod has what it takes when it is asked for."""
    tmp_path.chmod(0o755)
    (tmp_path / "oal-host.conf").write_text(
        "config exporter\n\toption ap_id 'host-test'\n\toption status_socket '/tmp/s'\nconfig tcp\n"
        "config file\n\toption path '/tmp/made.oalcap'\n")
    inside = (*SAFE, "-v", f"{tmp_path}:/etc/oal:ro", "--entrypoint", "oal-host", image["exporter"])
    assert "good; host host-test" in engine.docker("run", *inside, "check-config", "-c", "/etc/oal/oal-host.conf")
    asked = run("docker", "run", *inside, "congestion", check=False)
    assert asked.returncode and "oal-host: error: congestion: " in asked.stdout, asked.stdout


def test_exporter_has_the_debian_package_of_the_agent_of_hosts(engine, image, tmp_path):
    container = engine.docker("create", image["exporter"]).strip()
    engine.docker("cp", f"{container}:/usr/share/oal/oal-host.deb", str(tmp_path))
    engine.docker("rm", "-v", container)
    said = run("dpkg-deb", "-f", tmp_path / "oal-host.deb").stdout
    fields = dict(re.findall(r"^(\w[\w-]*): (.*)$", said, re.M))
    assert fields["Package"] == "oal-host" and fields["Version"] == tags()["OAL_VERSION"]
    assert "librdkafka1" in fields["Depends"] and "libbpf" in fields["Depends"]
    assert "./usr/bin/oal-host" in run("dpkg-deb", "-c", tmp_path / "oal-host.deb").stdout


def test_mlflow_is_healthy_on_its_own(engine, image, request, tmp_path):
    (tmp_path / "password").write_text("a password of a test")
    (tmp_path / "mlflow.yaml").write_text(
        "listen: 127.0.0.1:5000\nstate_dir: /var/lib/oal\nadmin: {user: admin, password_file: /etc/oal/password}\n")
    for file in tmp_path.iterdir():
        file.chmod(0o600)
        os.chown(file, 10001, 10001)
    healthy(engine, started(engine, request, image["learning"], tmp_path), 300)


def test_a_sick_service_is_told_from_a_well_one(engine, image, request, tmp_path):
    """oal-health fails where nobody listens, and where the answer is not 2xx."""
    said = engine.docker("run", *SAFE, "--entrypoint", "sh", image["push"], "-c",
                         "oal-health 127.0.0.1:1/x 2>/dev/null; echo $?")
    assert said.strip().endswith("1")
    server = (
        "import http.server as h; h.HTTPServer(('127.0.0.1', 80 + 8000), type('H', (h.BaseHTTPRequestHandler,),"
        " {'do_GET': lambda s: s.send_error(200 if s.path == '/well' else 503)})).serve_forever()"
    )
    script = (
        f'python3 -c "{server}" 2>/dev/null & until oal-health 127.0.0.1:8080/well; do :; done 2>/dev/null; oal-health'
        ' 127.0.0.1:8080/ill; echo status $?'
    )
    said = engine.docker("run", *SAFE, image["learning"], "bash", "-c", script)
    assert "answers 503" in said and "status 1" in said
