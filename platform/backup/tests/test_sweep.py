"""Whoever prunes has not the volume of ClickHouse's server: `oal-backup sweep` beside the server removes what it is
told by way of the server."""
import json
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Backup, config_text
from oal_backup import BackupError, cli, config, removal
from oal_local.platform import Platform

LIST = "oal-backup-remove.tsv"


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    with Platform(tmp_path_factory.mktemp("platform") / "state", ports="auto", only=["clickhouse"]) as running:
        yield running


class Elsewhere(Backup):
    """`oal-backup` where the folder HIDDEN is another, empty one, as in a pod without the server's volume."""

    def __init__(self, config, hidden):
        super().__init__(config)
        self.hidden = hidden

    def __call__(self, *arguments: str, ok: bool = True) -> str:
        program = ROOT / "platform" / "backup" / "oal-backup"
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', self.hidden, program,
             "--config", self.config, *arguments], capture_output=True, text=True, timeout=300)
        assert (done.returncode == 0) == ok, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def backup(platform, tmp_path):
    folder = platform.state.clickhouse / "backups"
    folder.mkdir(exist_ok=True)
    config = tmp_path / "backup.toml"
    config.write_text(config_text(tmp_path / "kept", clickhouse={
        "url": platform.clickhouse.http_url, "user": "admin",
        "password_file": platform.clickhouse.password_file("admin"), "location": f"File('{folder}/{{name}}')",
        "sweep_list": LIST
    }))
    return Elsewhere(config, folder)


def test_prune_has_the_sweeper_remove_what_it_does_not_see(platform, backup, tmp_path):
    folder, alive = platform.state.clickhouse / "backups", tmp_path / "alive"
    for name in ("one", "two", "three"):
        backup("create", name)
    sweeper = subprocess.Popen(
        [ROOT / "platform" / "backup" / "oal-backup", "sweep", folder, platform.state.clickhouse / LIST, "--alive",
         alive], stdout=subprocess.PIPE, text=True)
    try:
        assert "removed two" in backup("prune", "--keep", "1")
    finally:
        sweeper.terminate()
        said = sweeper.communicate(timeout=30)[0]
    assert sweeper.returncode == 0 and alive.exists()
    assert said.splitlines() == [f"removed {folder / 'one'}", f"removed {folder / 'two'}"]
    assert sorted(path.name for path in folder.iterdir()) == ["three"]
    assert not (platform.state.clickhouse / LIST).exists()


class Unseen(type(Path())):
    """A folder of the server's that is not mounted here."""

    def is_dir(self):
        return False


def test_without_a_sweeper_nothing_is_forgotten(platform, backup, tmp_path, monkeypatch):
    for name in ("four", "five"):
        backup("create", name)
    monkeypatch.setattr(removal, "SWEPT_WITHIN_S", 1)
    monkeypatch.setattr(removal, "Path", Unseen)
    with pytest.raises(BackupError, match="is `oal-backup sweep` running beside the ClickHouse server"):
        cli.prune(config.load(str(backup.config)), 1)
    assert "four" in backup("list")
    (platform.state.clickhouse / LIST).unlink()  # what the next sweeper would do


def test_a_list_that_names_another_place_removes_nothing(tmp_path):
    kept = tmp_path / "kept"
    (kept / "sub").mkdir(parents=True)
    for text in ("../kept\n", "sub/../..\n", "\n", ".\n"):
        (tmp_path / "list").write_text(text)
        with pytest.raises(BackupError, match="is no backup's name"):
            removal.sweep_once(kept, tmp_path / "list")
        assert (kept / "sub").is_dir() and (tmp_path / "list").exists()
    # The server has opened the file and not yet written it.
    for begun in ("", "su"):
        (tmp_path / "list").write_text(begun)
        removal.sweep_once(kept, tmp_path / "list")
        assert (kept / "sub").is_dir() and (tmp_path / "list").exists()


def test_every_nth_backup_is_full_and_so_is_one_to_another_place(platform, backup):
    def base(name):
        return json.loads((backup.config.parent / "kept" / name / "manifest.json").read_text())[
            "parts"]["clickhouse"]["base"]
    for name in ("a", "b", "c"):
        backup("create", name, "--full-every", "2")
    assert [base(name) for name in ("a", "b", "c")] == [None, "a", None]
    backup.config.write_text(backup.config.read_text().replace("/{name}')", "/moved-{name}')"))
    backup("create", "d", "--full-every", "2")
    assert base("d") is None
    assert "goes without --base" in backup("create", "e", "--full-every", "2", "--base", "d", ok=False)
