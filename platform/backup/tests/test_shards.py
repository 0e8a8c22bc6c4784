"""Two servers with a share each: kept together, lost, and each brought back to its own."""
import json
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, Backup, config_text
from oal_local.platform import Platform

DATABASE = "oal_shard"


class Cluster:
    """Two real servers with the migrated tables of a shard each, one password for both, and `oal-backup` for them."""

    def __init__(self, folder):
        self.folder = folder
        self.platforms = [
            Platform(folder / f"shard{n}", ports="auto", only=["clickhouse"], migrate=False) for n in (1, 2)
        ]

    def up(self) -> "Cluster":
        for platform in self.platforms:
            if platform is not self.platforms[0]:
                platform.state.make()
                shutil.copytree(self.platforms[0].state.secrets, platform.state.secrets, dirs_exist_ok=True)
            platform.up()
            self.migrate(platform)
        return self

    def migrate(self, platform) -> None:
        subprocess.run([
            sys.executable, ROOT / "clickhouse" / "migrate", "--url", platform.clickhouse.http_url, "--user", "admin",
            "--password-file",
            platform.clickhouse.password_file("admin"), "--database", DATABASE
        ], check=True, capture_output=True, timeout=300)

    def backup(self, urls: list[str] | None = None, **more) -> Backup:
        config = self.folder / "backup.toml"
        section = {
            "urls": urls or [platform.clickhouse.http_url for platform in self.platforms],
            "user": "admin",
            "database": DATABASE,
            # in the first folder that each server allows
            "password_file": self.platforms[0].clickhouse.password_file("admin"),
            "location": "File('{name}')"
        }
        config.write_text(config_text(self.folder / "kept", clickhouse=section | more))
        return Backup(config)

    def insert(self, *rows: int) -> None:
        """So many of each server's own access point."""
        for n, (platform, count) in enumerate(zip(self.platforms, rows)):
            platform.clickhouse.query(
                f"INSERT INTO {DATABASE}.gap (ap_id, site, ts, topic) SELECT 'ap-{n}', 'hall', now64(6) - number,"
                f" 'ap.samples.v1' FROM numbers({count})"
            )

    def rows(self, database: str = DATABASE) -> list[tuple[str, int]]:
        return [(row["ap_id"], row["n"]) for platform in self.platforms
                for row in platform.clickhouse.rows(f"SELECT ap_id, count() AS n FROM {database}.gap GROUP BY ap_id")]

    def lose(self) -> None:
        for platform in self.platforms:
            platform.clickhouse.query(f"DROP DATABASE IF EXISTS {DATABASE} SYNC")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield made.up()
    finally:
        for platform in made.platforms:
            platform.down()


@pytest.fixture
def whole(cluster):
    """Both servers with the tables of a new shard."""
    cluster.lose()
    for platform in cluster.platforms:
        cluster.migrate(platform)
    return cluster


def urls(cluster) -> list[str]:
    return [platform.clickhouse.http_url for platform in cluster.platforms]


def test_each_shard_comes_back_to_its_server(whole):
    backup = whole.backup()
    whole.insert(1000, 200)
    assert "1,2" in (said := backup(
        "create",
        "first")) and "rows of ClickHouse in 2 shards" in said and "File('first-shard1'), File('first-shard2')" in said
    whole.insert(0, 500)
    backup("create", "second", "--base", "first")
    first, second = (json.loads(
        (whole.folder / "kept" / name / "manifest.json").read_text())["parts"]["clickhouse"]["shards"]
                     for name in ("first", "second"))
    assert [shard["server"] for shard in second] == urls(whole) and [shard["rows_at_least"]["gap"]
                                                                     for shard in second] == [1000, 700]
    assert all(new["bytes"] < old["bytes"]
               for new, old in zip(second, first)), "what is there already was written again"
    assert [line.split("\t")[2:4]
            for line in backup("list").splitlines()] == [["clickhouse", sums(backup, "first")],
                                                         ["clickhouse, after first",
                                                          sums(backup, "second")]]
    assert "--cluster" not in backup("restore", "second", "--as", "rehearsal")
    assert whole.rows("rehearsal") == [("ap-0", 1000), ("ap-1", 700)]
    for platform in whole.platforms:
        platform.clickhouse.query("DROP DATABASE rehearsal SYNC")
    whole.lose()
    said = backup("restore", "second")
    assert (
        f"database {DATABASE}" in said
        and "servers 2" in said
        and f"migrate --url {urls(whole)[0]} --url {urls(whole)[1]}" in said
    )
    assert whole.rows() == [("ap-0", 1000), ("ap-1", 700)]
    whole.insert(1, 1)
    assert whole.rows() == [("ap-0", 1001), ("ap-1", 701)], "a restored shard takes rows"


def sums(backup: Backup, name: str) -> str:
    return backup("verify", name).strip().removeprefix(f"{name}: whole; ")


def test_a_restore_begins_nowhere_while_a_shard_has_rows_or_is_away(whole):
    backup = whole.backup()
    whole.insert(10, 10)
    backup("create", "refused")
    one, two = whole.platforms
    one.clickhouse.query(f"DROP DATABASE {DATABASE} SYNC")
    said = backup("restore", "refused", ok=False)
    assert "overwrites nothing" in said and two.clickhouse.http_url in said
    two.stop("clickhouse")
    try:
        assert f"{two.clickhouse.http_url} does not answer" in backup("restore", "refused", ok=False)
        assert f"{two.clickhouse.http_url} does not answer" in backup("create", "away", ok=False)
    finally:
        two.start("clickhouse")
        two.wait_ready("clickhouse")
    assert one.clickhouse.rows(f"SELECT name FROM system.databases WHERE name = '{DATABASE}'") == []
    assert two.clickhouse.rows(f"SELECT count() AS n FROM {DATABASE}.gap") == [{"n": 10}]


def test_as_many_servers_as_there_were_shards(whole):
    whole.backup()("create", "two")
    whole.lose()
    alone = whole.backup(urls(whole)[:1])
    assert "shards of ClickHouse in the backup: 2, servers that [clickhouse] names: 1" in alone(
        "restore", "two", ok=False)
    assert "make one without --base" in alone("create", "more", "--base", "two", ok=False)
    assert "is of database `oal_shard`" in whole.backup(database="oal")("restore", "two", ok=False)
    assert whole.platforms[0].clickhouse.rows(f"SELECT name FROM system.databases WHERE name = '{DATABASE}'") == []


def test_a_backup_that_one_server_cannot_write_is_none(whole):
    backup = whole.backup()
    whole.platforms[1].clickhouse.query(f"BACKUP DATABASE {DATABASE} TO File('taken-shard2')")
    said = backup("create", "taken", ok=False)
    assert "BACKUP_ALREADY_EXISTS" in said and urls(
        whole)[1] in said and "remove what other servers wrote: File('taken-shard1')" in said
    whole.platforms[1].clickhouse.query(f"DROP DATABASE {DATABASE} SYNC")
    assert f"there is no database `{DATABASE}` at {urls(whole)[1]}" in backup("create", "half", ok=False)
    assert not (whole.platforms[0].state.clickhouse / "backups" / "half-shard1").exists() and not (whole.folder / "kept"
                                                                                                   / "half").exists()


def test_a_shard_with_fewer_rows_than_were_kept_is_named(whole):
    backup = whole.backup()
    whole.insert(10, 10)
    backup("create", "short")
    file = whole.folder / "kept" / "short" / "manifest.json"
    content = json.loads(file.read_text())
    content["parts"]["clickhouse"]["shards"][1]["rows_at_least"]["gap"] = 11
    file.write_text(json.dumps(content))
    said = backup("restore", "short", "--as", "short", ok=False)
    assert f"fewer rows at {urls(whole)[1]}" in said and "'gap': (10, 11)" in said
