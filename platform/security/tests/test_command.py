"""The command line, run as a user runs it."""
import base64
import json
import os
import stat
import subprocess

import pytest
from conftest import COMMAND, ca


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command") / "state"
    ca("init", folder, "--hosts", "broker=kafka,kafka-0.kafka,10.0.0.7", "--hosts", "deploy=push.example.net")
    return folder


def bytes_of(folder) -> dict:
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*/*"))}


def names(folder, file: str) -> list[str]:
    return next(row["names"] for row in json.loads(ca("show", folder, "--json")) if row["file"] == file)


def test_init_makes_what_every_deployment_needs(made):
    there = bytes_of(made)
    for name in ("ca", "ap-ca", "ops-ca", "broker", "admin", "stream-jobs", "trainer", "model-registry", "deploy",
                 "lab", "viewer", "clickhouse", "postgres", "mlflow", "jolokia", "flink-rest", "operator"):
        assert {f"{name}.crt", f"{name}.key"} <= set(there)
    assert {
        "broker.pem", "flink-internal.p12", "flink-rest.p12", "flink-rest-trust.p12", "bundle-keys.txt", "mac-masters",
        "sign-registry.pem", "clickhouse-grafana.password", "clickhouse-cluster.secret", "postgres-push.password",
        "metrics.token", "push-admin.token"
    } <= set(there)
    secrets = [text for name, text in there.items() if name.endswith((".password", ".token", ".secret"))]
    assert len(set(secrets)) == len(secrets) and all(len(text) >= 32 for text in secrets)


def test_init_again_changes_no_byte(made):
    before = bytes_of(made)
    assert "everything is there" in ca("init", made)
    assert bytes_of(made) == before


def test_a_folder_of_before_there_were_clusters_gets_their_secret_and_keeps_the_rest(made):
    before = bytes_of(made)
    (made / "secrets" / "clickhouse-cluster.secret").unlink()
    assert "made clickhouse-cluster.secret" in ca("init", made)
    after = bytes_of(made)
    assert {name for name in after if after[name] != before[name]} == {"clickhouse-cluster.secret"} and len(
        base64.urlsafe_b64decode(after["clickhouse-cluster.secret"] + b"=")) == 32


def test_what_is_secret_is_the_owners_alone(made):
    """Whatever the umask was."""
    ca("ap", made, "ap-mode")
    for file in made.glob("*/*"):
        public = file.suffix == ".crt" or file.name == "bundle-keys.txt"
        assert stat.S_IMODE(file.stat().st_mode) == (0o644 if public else 0o600), file
    assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in (made / "pki", made / "secrets"))


def test_hosts_are_added_and_stay(made):
    assert names(made, "broker.crt")[:4] == ["localhost", "127.0.0.1", "kafka", "kafka-0.kafka"]
    ca("init", made, "--hosts", "broker=kafka-1.kafka,*.kafka.svc")
    assert {"localhost", "kafka-0.kafka", "10.0.0.7", "kafka-1.kafka", "*.kafka.svc"} <= set(names(made, "broker.crt"))
    assert names(made, "deploy.crt") == ["localhost", "127.0.0.1", "push.example.net"]


def test_a_missing_file_is_made_again_and_the_others_stay(made):
    before = bytes_of(made)
    (made / "secrets" / "metrics.token").unlink()
    (made / "pki" / "viewer.key").unlink()
    assert "made viewer, metrics.token" in ca("init", made)
    after = bytes_of(made)
    assert {name for name in after
            if after[name] != before[name]} == {"viewer.crt", "viewer.key", "viewer.pem", "metrics.token"}


def test_an_ap_by_hand_has_its_site_and_a_batch_key(made):
    from oal_schema import mac

    ca("ap", made, "ap-7", "--site", "berlin")
    assert names(made, "ap-7.crt") == ["urn:oal:site:berlin"]
    keys = (made / "pki" / "ap-7.mac-keys").read_text()
    assert keys == mac.ap_lines(mac.read_masters(made / "secrets" / "mac-masters"), [("ap-7", "berlin")]) == ca(
        "mac-keys", made, "ap-7", "--site", "berlin")
    serial = (made / "pki" / "ap-7.crt").read_bytes()
    ca("ap", made, "ap-7", "--site", "berlin")
    assert (made / "pki" / "ap-7.crt").read_bytes() == serial
    ca("ap", made, "ap-7", "--site", "bonn")
    assert names(made, "ap-7.crt") == ["urn:oal:site:bonn"] and " bonn " in (made / "pki" / "ap-7.mac-keys").read_text()


def test_a_new_master_keeps_the_old_ones_until_they_are_dropped(made):
    from oal_schema import mac

    file = made / "secrets" / "mac-masters"
    old = mac.read_masters(file)
    newest = max(old) + 1
    assert f"key_id {newest}" in ca("masters", "rotate", made)
    assert mac.read_masters(file).items() > old.items()
    assert ca("mac-keys", made, "ap-7").split()[2] == str(newest)
    assert "newest" in ca("masters", "drop", made, newest, rc=1)
    ca("masters", "drop", made, min(old))
    assert min(old) not in mac.read_masters(file)
    assert "has no key_id" in ca("masters", "drop", made, min(old), rc=1)


@pytest.mark.parametrize("arguments, says", [(["ap", "admin"], "name of a certificate with OU=service"),
                                             (["ap", "../ap"], "cannot be an AP's id"),
                                             (["ap", "a,OU=service"], "cannot be an AP's id"),
                                             (["ap", "ca"], "cannot be an AP's id"),
                                             (["ap", "x" * 65], "cannot be an AP's id"),
                                             (["ap", "ap-1", "--site", "a/b"], "cannot be a site"),
                                             (["service", "viewer", "--hosts", "x"], "viewer is not a server"),
                                             (["service", "new", "--hosts", "bad host"], "is no host"),
                                             (["operator", "../x"], "cannot be a person's name"),
                                             (["init", "--hosts", "brocker=kafka"], "no such service: brocker")])
def test_bad_input_says_what_to_do_and_writes_nothing(made, arguments, says):
    before = bytes_of(made)
    assert says in ca(arguments[0], made, *arguments[1:], rc=1)
    assert bytes_of(made) == before


def test_hosts_without_a_service_are_a_mistake_of_usage(made):
    assert "should be NAME=HOST" in ca("init", made, "--hosts", "kafka", rc=2)


def test_without_init_every_other_command_says_so(tmp_path):
    assert "oal-ca init" in ca("ap", tmp_path, "ap-1", rc=1)
    assert "oal-ca init" in ca("show", tmp_path, rc=1)


def test_two_at_once_make_one_platform(tmp_path):
    running = [
        subprocess.Popen([COMMAND, "init", tmp_path / "state"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True) for _ in range(2)
    ]
    said = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert sum("everything is there" in text for text in said) == 1


def test_show_warns_of_what_lapses(made):
    assert "broker.crt" in ca("show", made, "--within", "30")
    ca("ap", made, "ap-short", "--days", "10")
    assert "ap-short.crt" in ca("show", made, "--within", "30", rc=3)


def test_help_of_every_command():
    for command in ("init", "service", "ap", "mac-keys", "operator", "masters", "root", "show"):
        assert command in ca("--help") and "usage: oal-ca" in ca(command, "--help")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    assert "file" in ca("init", tmp_path / "file", rc=1)
    assert os.listdir(tmp_path) == ["file"]


def test_the_keys_that_sign_bundles_say_what_they_may_sign_and_older_lines_get_it(made):
    file = made / "pki" / "bundle-keys.txt"
    lines = {line.split()[2]: line.split()[3:] for line in file.read_text().splitlines() if line.startswith("ed25519")}
    assert lines == {
        "registry": ["role=registry", "scope=fleet", "max_mode=enforce"],
        "online": ["role=trainer", "scope=fleet", "max_mode=enforce"],
    }
    before = file.read_text()
    older = "\n".join(" ".join(line.split()[:3]) if "role=" in line else line for line in before.splitlines())
    theirs = "ed25519 iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w= theirs\n"
    file.write_text(f"{older}\n{theirs}")
    ca("init", made)
    assert file.read_text() == before + theirs, "a key that an operator added is his to give a role"
    narrowed = before.replace("role=trainer scope=fleet max_mode=enforce", "role=trainer scope=site/a max_mode=shadow")
    file.write_text(narrowed)
    ca("init", made)
    assert file.read_text() == narrowed, "so is what he changed"
    file.write_text(before)
