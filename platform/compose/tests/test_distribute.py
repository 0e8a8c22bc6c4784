"""Who gets which secrets, on a state folder that the real oal-ca made; no engine is asked."""
import importlib.util
import re
import stat

import pytest
import yaml
from docker_engine import ROOT, run


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    spec = yaml.safe_load((ROOT / "platform" / "compose" / "secrets.yaml").read_text())
    run(ROOT / "platform" / "security" / "oal-ca", "init", folder, "--hosts", "broker=kafka", "--hosts", "deploy=push",
        timeout=600)
    run(ROOT / "platform" / "security" / "oal-ca", "ap", folder, *spec["sim"]["aps"], "--site", spec["sim"]["site"])
    return folder


@pytest.fixture(scope="module")
def distribute():
    spec = importlib.util.spec_from_file_location("distribute", ROOT / "platform" / "compose" / "distribute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def delivered(state, distribute, tmp_path_factory):
    """Service → file → content."""
    out = tmp_path_factory.mktemp("out")
    spec = distribute.load(ROOT / "platform" / "compose" / "secrets.yaml", {})
    values = distribute.all_values(spec, state)
    return {
        name: distribute.contents(service, spec, ROOT, state, out / name, values)
        for name, service in spec["services"].items()
    }


def test_every_template_is_filled_and_every_file_is_there(delivered):
    for service, files in delivered.items():
        for name, data in files.items():
            assert data, f"{service}: {name} is empty"
            if name.endswith((".yaml", ".properties", ".xml", ".dsn")):
                assert b"${" not in data, f"{service}: {name}"


@pytest.mark.parametrize("switch,spoken", [("on", "https"), ("", "http")])
def test_the_switch_of_tls_changes_every_address_and_every_server(state, distribute, tmp_path, switch, spoken):
    spec = distribute.load(ROOT / "platform" / "compose" / "secrets.yaml", {"OAL_TLS": switch})
    values = distribute.all_values(spec, state)
    files = {
        f"{service}/{name}": data.decode() for service, what in spec["services"].items()
        for name, data in distribute.contents(what, spec, ROOT, state, tmp_path, values).items()
        if name in what.get("render", {})
    }
    schemes = {scheme for text in files.values()
               for scheme in re.findall(r"(https?)://(?:clickhouse|mlflow|registry):", text)}
    assert schemes == {spoken}
    for name, key in (("push/deploy.yaml", "admin_tls"), ("mlflow/mlflow.yaml", "tls"),
                      ("registry/registry.yaml", "tls"), ("trainer/online.yaml", "tls")):
        assert (key in yaml.safe_load(files[name])) == bool(switch), name
    for name in ("kafka/jolokia.properties", "flink/jolokia.properties"):
        assert ("\nprotocol=https\n" in files[name]) == bool(switch)
    assert ("\nhostssl all" in files["postgres/pg_hba.conf"]) == bool(switch)
    assert ("sslmode=verify-full&sslrootcert=" in files["push/postgres.dsn"]) == bool(switch)
    for file in ("clickhouse/tls-on.xml", "clickhouse/tls.xml", "grafana/tls-on.env", "grafana/tls.env"):
        assert (ROOT / "platform/compose/config" / file).exists()


def test_another_word_than_on_is_refused(distribute):
    with pytest.raises(SystemExit, match="OAL_TLS is 'off'"):
        distribute.load(ROOT / "platform" / "compose" / "secrets.yaml", {"OAL_TLS": "off"})


def test_an_override_takes_the_place_of_the_templates_line(delivered):
    lines = delivered["kafka"]["server.properties"].decode().splitlines()
    assert [line for line in lines if line.startswith("listeners=")
            ] == ["listeners=CLIENT://0.0.0.0:9092,AP://0.0.0.0:9094,CONTROLLER://127.0.0.1:9093"]
    assert (
        "ssl.client.auth=required" in lines
        and "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer" in lines
    )
    flink = yaml.safe_load(delivered["flink"]["config.yaml"])
    assert flink["jobmanager.rpc.address"] == "jobmanager" and flink[
        "security.ssl.rest.authentication-enabled"] is True and flink["rest.bind-address"] == "0.0.0.0"


def test_clickhouse_gets_hashes_and_no_password_but_the_administrators(delivered, state):
    files = delivered["clickhouse"]
    assert {"analyst.xml", "ingest.xml", "grafana.xml", "telegraf.xml", "admin.xml"} <= set(files)
    for user in ("analyst", "ingest", "grafana", "telegraf"):
        password = (state / "secrets" / f"clickhouse-{user}.password").read_bytes()
        assert all(password not in data for data in files.values()) and b"from_env" not in files[f"{user}.xml"]


def test_the_root_key_and_the_issuing_keys_go_to_nobody_but_push(delivered, state):
    root, issuing, operators = ((state / "pki" / f"{name}.key").read_bytes() for name in ("ca", "ap-ca", "ops-ca"))
    for service, files in delivered.items():
        assert root not in files.values() and operators not in files.values()
        assert (issuing in files.values()) == (service == "push"), service


def test_what_is_delivered_is_readable_by_its_user_alone_and_again_changes_nothing(distribute, tmp_path, monkeypatch):
    owners = {}
    monkeypatch.setattr(
        distribute.os, "chown",
        lambda path, uid, gid: owners.update({str(path).removesuffix(".new").replace("/.", "/"): (uid, gid)}))
    (tmp_path / "old").write_bytes(b"x")
    assert distribute.deliver(tmp_path, {"a": b"1", "b": b"2"}, 10001)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b"]
    for name in ("a", "b"):
        assert stat.S_IMODE(
            (tmp_path / name).stat().st_mode) == 0o400 and owners[str(tmp_path / name)] == (10001, 10001)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o500
    assert not distribute.deliver(tmp_path, {"a": b"1", "b": b"2"}, 10001)


def test_a_template_with_an_unknown_name_is_refused_by_name(distribute, tmp_path):
    (tmp_path / "t").write_text("x=${nobody}\n")
    with pytest.raises(SystemExit, match="'nobody', which nothing fills"):
        distribute.rendered(tmp_path, {"from": "t"}, {})
