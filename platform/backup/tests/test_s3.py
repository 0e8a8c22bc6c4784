"""Backups of a real ClickHouse in a real S3 server: each night what is new, the oldest removed, and brought back."""
import json
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Backup, config_text
from oal_local import clickhouse
from oal_local.platform import Platform
from s3_store import Store

#: As helm/oal/templates/_s3.tpl writes it.
DISK = """<storage_configuration><disks><backups><type>s3_plain</type><endpoint>{url}/{bucket}/night/</endpoint>
<region>us-east-1</region><access_key_id>{access}</access_key_id><secret_access_key>{secret}</secret_access_key>
<skip_access_check>true</skip_access_check></backups></disks></storage_configuration></clickhouse>"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = Store(tmp_path_factory.mktemp("s3"), "kept")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def platform(store, tmp_path_factory):
    """ClickHouse alone, with the disk that the chart's has."""
    plain = clickhouse.render

    def render(state, settings):
        plain(state, settings)
        file = state.clickhouse / "config.xml"
        text = file.read_text().replace("<backups>", "<backups><allowed_disk>backups</allowed_disk>")
        file.write_text(text.replace("</clickhouse>", DISK.format(
            url=store.url, bucket=store.bucket, access=store.access, secret=store.secret)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clickhouse, "render", render)
        with Platform(tmp_path_factory.mktemp("platform") / "state", ports="auto", only=["clickhouse"]) as running:
            yield running


class FromImage(Backup):
    """`oal-backup` with the libraries of the image that runs it."""

    def __call__(self, *arguments: str, ok: bool = True) -> str:
        venv = subprocess.run([ROOT / "platform/setup/venv", ROOT / "platform/images/setup/requirements.txt"],
                              check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        done = subprocess.run([f"{venv}/bin/python", "-m", "oal_backup", "--config", self.config, *arguments],
                              capture_output=True, text=True, timeout=300,
                              env={"PYTHONPATH": str(ROOT / "platform/backup/src"), "PATH": "/usr/bin:/bin"})
        assert (done.returncode == 0) == ok, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def backup(platform, store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("backups")
    config = folder / "backup.toml"
    config.write_text(config_text(folder / "kept", clickhouse={
        "url": platform.clickhouse.http_url, "user": "admin",
        "password_file": platform.clickhouse.password_file("admin"), "location": "Disk('backups', '{name}')",
        "s3_url": f"{store.url}/{store.bucket}/night", "s3_access_key_file": store.access_file,
        "s3_secret_key_file": store.secret_file
    }))
    return FromImage(config)


def insert(platform, ap: str, rows: int) -> None:
    platform.clickhouse.query(f"INSERT INTO oal.gap (ap_id, site, ts, topic) SELECT '{ap}', 'hall', now64(6) - number,"
                              f" 'ap.samples.v1' FROM numbers({rows})")


def part(backup, name: str) -> dict:
    file = Path(backup.config).parent / "kept" / name / "manifest.json"
    return json.loads(file.read_text())["parts"]["clickhouse"]


def test_nights_of_a_week_build_on_each_other_in_s3_and_the_oldest_go(platform, backup, store):
    insert(platform, "ap-1", 50_000)
    nights = [f"night{n}" for n in range(5)]
    for n, night in enumerate(nights):
        insert(platform, f"later-{n}", 10)
        backup("create", night, "--full-every", "3")
    assert [part(backup, night)["base"] for night in nights] == [None, "night0", "night1", None, "night3"]
    sizes = [part(backup, night)["shards"][0]["bytes"] for night in nights]
    assert sizes[1] < sizes[0] / 2 and sizes[4] < sizes[3] / 2, sizes
    assert all(store.objects(f"night/{night}") for night in nights)

    # The newest builds on night3, so two stay; of what is gone nothing is left in the store.
    said = backup("prune", "--keep", "1")
    assert [night for night in nights if f"removed {night}" in said] == nights[:3]
    assert "remove it there" not in said
    assert [bool(store.objects(f"night/{night}")) for night in nights] == [False, False, False, True, True]

    platform.clickhouse.query("DROP DATABASE oal SYNC")
    backup("restore", "night4")
    assert platform.clickhouse.rows("SELECT ap_id, count() AS n FROM oal.gap GROUP BY ap_id ORDER BY ap_id") == [
        {"ap_id": "ap-1", "n": 50_000}, *({"ap_id": f"later-{n}", "n": 10} for n in range(5))]


def test_a_store_that_refuses_keeps_the_backup_listed(backup, store):
    """Not: the manifest goes, and its data stay and are paid for."""
    backup("create", "kept-a")
    backup("create", "kept-b")
    right = store.secret_file.read_text()
    store.secret_file.write_text("wrong")
    try:
        assert "SignatureDoesNotMatch" in backup("prune", "--keep", "1", ok=False)
    finally:
        store.secret_file.write_text(right)
    assert "kept-a" in backup("list")
    backup("prune", "--keep", "1")
    assert "kept-a" not in backup("list") and not store.objects("night/kept-a")
