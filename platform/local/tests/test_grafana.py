"""What Grafana would be started with. No Grafana can be had here, so a folder stands for its installation; it is not
started.
"""
import configparser
import os

import pytest
from oal_local import grafana, passwords
from oal_local.errors import PlatformError
from oal_local.paths import State, write_private
from oal_local.ports import DEFAULT
from oal_local.settings import Settings


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """Neither GRAFANA_HOME nor a Grafana on PATH."""
    monkeypatch.delenv("GRAFANA_HOME", raising=False)
    monkeypatch.delenv("GF_PATHS_PLUGINS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(grafana, "PACKAGE_HOME", tmp_path / "no-package")
    monkeypatch.setattr(grafana, "PACKAGE_PLUGINS", tmp_path / "no-plugins")
    return tmp_path


def installation(folder, *programs, plugin=True):
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "defaults.ini").touch()
    (folder / "bin").mkdir()
    for name in programs:
        (folder / "bin" / name).touch(mode=0o755)
    if plugin:
        (folder / "data" / "plugins" / grafana.PLUGIN).mkdir(parents=True)
    return folder


@pytest.fixture
def instance(tmp_path):
    state = State(tmp_path / "state")
    state.make()
    write_private(passwords.file(state, "admin", "grafana"), "secret")
    write_private(state.secrets / "grafana-secret.key", "another")
    return state, Settings(ports=dict(DEFAULT))


def test_without_grafana_there_is_none_and_the_way_to_one_is_told(alone, instance):
    assert grafana.home() is None
    grafana.render(*instance)
    assert not grafana.folder(instance[0]).exists()
    assert (
        "GRAFANA_HOME" in grafana.HOW_TO_GET
        and grafana.PLUGIN in grafana.HOW_TO_GET
        and "observe/grafana/check" in grafana.HOW_TO_GET
    )


def test_a_wrong_grafana_home_is_named(alone, monkeypatch):
    monkeypatch.setenv("GRAFANA_HOME", str(alone / "nothing"))
    with pytest.raises(PlatformError, match="GRAFANA_HOME=.*nothing"):
        grafana.home()


@pytest.mark.parametrize("programs, arguments", [(("grafana", "grafana-server"), ["server"]),
                                                 (("grafana-server", ), [])])
def test_grafana_home_is_started_with_the_program_that_it_has(alone, monkeypatch, instance, programs, arguments):
    folder = installation(alone / "grafana", *programs)
    monkeypatch.setenv("GRAFANA_HOME", str(folder))
    state, settings = instance
    assert grafana.command(state, settings) == [
        str(folder / "bin" / programs[0]), *arguments, f"--homepath={folder}",
        f"--config={state.dir}/grafana/grafana.ini"
    ]


def test_a_grafana_on_path_is_found_with_its_home(alone, monkeypatch):
    folder = installation(alone / "opt", "grafana-server")
    (alone / "empty").mkdir()
    (alone / "empty" / "grafana-server").symlink_to(folder / "bin" / "grafana-server")
    assert grafana.home() == folder


def test_a_missing_plugin_is_named_with_the_command_that_installs_it(alone, monkeypatch):
    folder = installation(alone / "grafana", "grafana", plugin=False)
    with pytest.raises(PlatformError, match=f"plugins install {grafana.PLUGIN}"):
        grafana.plugins(folder)


def test_the_instance_gets_files_with_its_own_secrets_and_ports(alone, monkeypatch, instance):
    monkeypatch.setenv("GRAFANA_HOME", str(installation(alone / "grafana", "grafana")))
    state, settings = instance
    grafana.render(state, settings)
    here = grafana.folder(state)
    ini = configparser.ConfigParser(interpolation=None)
    ini.read(here / "grafana.ini")
    for key in ("admin_password", "secret_key"):
        path = ini["security"][key].removeprefix("$__file{").removesuffix("}")
        assert path.startswith(str(state.secrets)) and os.stat(path).st_mode & 0o077 == 0
    assert f"$__file{{{state.secrets}/clickhouse-grafana.password}}" in (
        here / "provisioning/datasources/oal.yaml").read_text()
    assert grafana.SECRETS not in "".join(path.read_text() for path in here.rglob("*.yaml"))
    made = grafana.environment(state, settings)
    assert made["GF_SERVER_HTTP_ADDR"] == "127.0.0.1" and made["GF_SERVER_HTTP_PORT"] == "3000" and made[
        "OAL_CLICKHOUSE_PORT"] == "8123"
    assert made["GF_PATHS_PROVISIONING"] == str(
        here / "provisioning") and made["OAL_GRAFANA_DASHBOARDS"].endswith("observe/grafana/dashboards")
    assert all(path.is_file() for path in grafana.files(state, settings))


def test_it_is_not_ready_while_nothing_listens(instance):
    from oal_local import ports

    state, settings = instance
    settings.ports = {"grafana": next(p for p in range(ports.FIRST, ports.LAST) if ports.free(p))}
    assert not grafana.ready(state, settings)
