"""Folders and MLflow's SQLite: what a full disk and older manifests do. No server is needed."""
import json
import os
import sqlite3
import subprocess

import pytest
from conftest import ROOT, Backup, config_text
from oal_backup import manifest


@pytest.fixture
def backup(tmp_path):
    """Two folders, and an MLflow with a model of 300 kB."""
    for name in ("pki", "secrets", "mlflow/artifacts"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(os.urandom(300_000))
    with sqlite3.connect(tmp_path / "mlflow" / "mlflow.db") as database:
        database.execute("CREATE TABLE runs AS SELECT randomblob(300000) AS run")
    config = tmp_path / "backup.toml"
    config.write_text(
        config_text(tmp_path / "kept", files={"folders": [tmp_path / "pki", tmp_path / "secrets"]},
                    mlflow={"state_dir": tmp_path / "mlflow"}))
    return Backup(config)


def on_a_small_disk(folder, kib: int, backup: Backup, *arguments: str) -> str:
    """What `oal-backup` says when `folder` is a disk of so many KiB; it must fail, and without a traceback, and leave
    nothing there.
    """
    folder.mkdir(exist_ok=True)
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            *own,
            "sh",
            "-euc",
            (
                'mount -t tmpfs -o size="$2"k none "$1"; folder=$1; shift 2; "$@" || code=$?; find "$folder" -type f;'
                ' exit ${code:-0}'
            ),
            "sh",
            str(folder),
            str(kib),
            ROOT / "platform" / "backup" / "oal-backup",
            "--config",
            backup.config,
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stdout + done.stderr
    assert done.stdout == "", "files were left"
    return done.stderr


@pytest.mark.parametrize("kib, part", [(100, "files"), (700, "mlflow"), (1000, "mlflow")])
def test_a_backup_to_a_disk_that_is_full_says_so_and_leaves_nothing(backup, tmp_path, kib, part):
    said = on_a_small_disk(tmp_path / "kept", kib, backup, "create", "one")
    assert f"oal-backup: backup one, {part}: " in said and ("No space left on device" in said
                                                            or "disk is full" in said), said


def test_a_restore_to_a_disk_that_is_full_says_so_and_leaves_nothing(backup, tmp_path):
    backup("create", "one")
    for name in ("pki", "secrets"):
        (tmp_path / name).rename(tmp_path / f"{name}.lost")
    small = tmp_path / "small"
    backup.config.write_text(
        config_text(tmp_path / "kept", files={"folders": [small / "pki", small / "secrets"]},
                    mlflow={"state_dir": small / "mlflow"}))
    said = on_a_small_disk(small, 400, backup, "restore", "one", "--only", "files")
    assert "oal-backup: restore one, files: " in said and "No space left on device" in said
    said = on_a_small_disk(small, 400, backup, "restore", "one", "--only", "mlflow")
    assert "oal-backup: restore one, mlflow: " in said and "No space left on device" in said


def test_a_folder_that_takes_no_backups_is_named(backup, tmp_path):
    (tmp_path / "kept").write_text("a file")
    assert f"Not a directory: '{tmp_path}/kept/one'" in backup("create", "one", ok=False)


def test_a_manifest_of_before_there_were_shards_is_read(tmp_path):
    flat = {"location": "File('/b/old')", "base": "older", "bytes": 10, "rows_at_least": {"gap": 5}}
    (tmp_path / manifest.FILE).write_text(
        json.dumps({"format": 1, "name": "old", "started": 0, "seconds": 1, "parts": {"clickhouse": flat},
                    "files": {}}))
    assert manifest.read(tmp_path)["parts"]["clickhouse"] == {"database": "", "base": "older", "shards": [
        {"server": "", "location": "File('/b/old')", "bytes": 10, "rows_at_least": {"gap": 5}}]}
