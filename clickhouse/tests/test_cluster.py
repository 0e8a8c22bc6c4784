"""Several servers that share the rows: what `migrate --cluster` makes of them. These tests, and those of views and
insertions, run on shards with --shards 2.
"""

import re
import shutil
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from conftest import FOLDER, Database, run_migrate
from server import QueryError, Server

WRITER = {"async_insert": 0, "insert_deduplicate": 1, "deduplicate_blocks_in_dependent_materialized_views": 1}
DAY = "2099-11-20"  # nothing of it expires


def migrate(servers: list[Server], *more: str):
    return run_migrate(*(argument for s in servers for argument in ("--url", s.url)), "--cluster", "oal", *more)


def first_files(folder: Path, number: int) -> Path:
    """The folder, with so many of the migrations."""
    folder.mkdir()
    for f in sorted((FOLDER / "migrations").glob("*.sql"))[:number]:
        shutil.copy(f, folder)
    return folder


@pytest.fixture
def shards(server, _shared):
    """The servers of cluster `oal`, with database `oal`."""
    return server.cluster


def packets(aps, seconds=(0, 1)) -> list[dict]:
    return [{"ap_id": ap, "ts": f"{DAY} 00:00:{s:02d}", "direction": 0, "payload_bytes": 10} for ap in aps
            for s in seconds]


def test_an_access_point_has_its_rows_on_one_server_and_every_server_answers_with_all(shards, database):
    aps = [f"ap-{i:02d}" for i in range(20)]
    database.insert("packet", packets(aps), **WRITER)
    lie = [{ap for (ap,) in s.rows("SELECT DISTINCT ap_id FROM oal_shard.packet")} for s in shards]
    assert lie[0] | lie[1] == set(aps) and not lie[0] & lie[1] and all(lie)
    for s in shards:
        assert s.rows("SELECT count(), uniqExact(ap_id) FROM oal.packet") == [["40", "20"]]
        assert s.rows("SELECT sum(pkts) FROM oal.packet_1m") == [["40"]]


def test_a_subquery_sees_the_rows_of_all_servers(shards, database):
    """Joined by another key than that of the shares."""
    database.insert("packet", packets([f"ap-{i:02d}" for i in range(8)], [0]), **WRITER)
    for s in shards:
        assert s.rows(
            "SELECT count() FROM oal.packet AS a JOIN (SELECT DISTINCT ap_id, payload_bytes FROM oal.packet) AS b USING"
            " (payload_bytes)"
        ) == [["64"]]
        assert s.rows(
            "SELECT count() FROM oal.packet WHERE payload_bytes IN (SELECT payload_bytes FROM oal.packet WHERE ap_id ="
            " 'ap-03')"
        ) == [["8"]]


def test_an_insert_that_a_dead_server_stopped_is_whole_and_single_when_it_is_repeated(shards, database):
    rows = packets([f"ap-{i:02d}" for i in range(20)])
    shards[1].kill()
    try:
        with pytest.raises(QueryError):
            database.insert("packet", rows, insert_deduplication_token="t", **WRITER)
    finally:
        shards[1].start().keep_expired()
    for again in shards:  # whichever server takes it
        Database(again, "oal").insert("packet", rows, insert_deduplication_token="t", **WRITER)
        assert database.rows("SELECT count(), sum(payload_bytes) FROM packet") == [["40", "400"]]
        assert database.rows("SELECT sum(pkts) FROM packet_1m") == [["40"]]


def ask_with_table(server: Server, sql: str, rows: str, **settings) -> str:
    """A statement that sees rows of `packet`, in TSV, as temporary table `sent`: as stream-jobs sends it."""
    structure = server.rows(
        "SELECT arrayStringConcat(groupArray(concat('`', name, '` ', type)), ', ') FROM (SELECT name, type FROM"
        " system.columns WHERE database = 'oal' AND table = 'packet' AND default_kind NOT IN ('MATERIALIZED', 'ALIAS',"
        " 'EPHEMERAL') ORDER BY position) FORMAT TSVRaw"
    )[0][0]
    body = (
        '--b\r\nContent-Disposition: form-data; name="sent"; filename="sent"\r\nContent-Type:'
        f' application/octet-stream\r\n\r\n{rows}\r\n--b--\r\n'
    )
    parameters = {"query": sql, "sent_format": "TSV", "sent_structure": structure, **settings}
    request = urllib.request.Request(f"{server.url}/?{urllib.parse.urlencode(parameters)}", data=body.encode(),
                                     headers={"Content-Type": "multipart/form-data; boundary=b"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def test_stream_jobs_finds_and_adds_the_rows_that_are_missing_on_any_server(shards, database):
    """The statements of ClickHouseClient.addMissing."""
    database.insert("packet", packets([f"ap-{i:02d}" for i in range(10)], [0]), **WRITER)
    rows = database.query("SELECT * FROM packet FORMAT TSV")
    database.truncate("packet")
    database.query("INSERT INTO packet FORMAT TSV\n" + "".join(rows.splitlines(keepends=True)[::2]), **WRITER)
    columns = "sipHash128(tuple(*))"
    lacking = (
        f"FROM sent WHERE {columns} NOT IN (SELECT {columns} FROM oal.packet WHERE ts >= (SELECT min(ts) FROM sent) AND"
        " ts <= (SELECT max(ts) FROM sent) AND ts IN (SELECT ts FROM sent))"
    )
    assert ask_with_table(shards[1], f"SELECT count() {lacking}", rows) == "5\n"
    ask_with_table(shards[1], f"INSERT INTO oal.packet SELECT * {lacking}", rows, **WRITER)
    assert database.rows("SELECT count(), uniqExact(ap_id) FROM packet") == [["10", "10"]]
    assert ask_with_table(shards[0], f"SELECT count() {lacking}", rows) == "0\n"


def test_a_second_run_finds_nothing_to_do(shards):
    done = migrate(shards)
    assert done.returncode == 0 and done.stdout.count(
        "nothing to do") == 4 and "applied" not in done.stdout, done.stdout


def test_later_migrations_come_to_every_server(shards, tmp_path):
    folder = tmp_path / "migrations"
    first_files(folder, 4)
    (folder / "0005_later.sql").write_text(
        "ALTER TABLE late ADD COLUMN IF NOT EXISTS `more` UInt8 COMMENT 'An apostrophe\\'s test';\n"
        "CREATE OR REPLACE VIEW v_late_more AS SELECT ap_id, more FROM late;\nDROP VIEW IF EXISTS v_ap_1m;\n")
    done = migrate(shards, "--database", "grown", "--folder", str(first_files(tmp_path / "before", 4)))
    assert done.returncode == 0, done.stderr
    done = migrate(shards, "--database", "grown", "--folder", str(folder))
    assert done.returncode == 0 and done.stdout.count("2 tables and views made anew") == 2, done.stdout + done.stderr
    for n, s in enumerate(shards):
        s.query(f"INSERT INTO grown.late (ap_id, ts, more) VALUES ('a', '{DAY} 00:00:00', {n})", **WRITER)
        assert s.rows(
            "SELECT comment FROM system.columns WHERE database = 'grown' AND table = 'late' AND name = 'more'") == [[
                "An apostrophe\\'s test"
            ]]
        assert s.rows("SELECT count() FROM system.tables WHERE database = 'grown' AND name = 'v_ap_1m'") == [["0"]]
    assert shards[0].rows("SELECT ap_id, more FROM grown.v_late_more ORDER BY more") == [["a", "0"], ["a", "1"]]
    assert migrate(shards, "--database", "grown", "--folder", str(folder), "--status").returncode == 0


def test_rows_of_rewrite_become_rows_of_action_on_every_server(shards, tmp_path):
    folder = first_files(tmp_path / "migrations", 18)
    assert (done := migrate(shards, "--database", "older", "--folder", str(folder))).returncode == 0, done.stderr
    rows = (f"SELECT concat('ap-', toString(number % 20)), toDateTime('{DAY} 00:00:00') + number, number"
            " FROM numbers(60)")
    sent = {"insert_deduplication_token": "sent before", **WRITER}
    shards[0].query(f"INSERT INTO older.rewrite (ap_id, ts, window_bytes) {rows}", **sent)
    before = shards[0].query("SELECT * FROM older.rewrite ORDER BY ts")
    assert (done := migrate(shards, "--database", "older")).returncode == 0, done.stderr
    for s in shards:
        assert s.query("SELECT * FROM older.rewrite ORDER BY ts") == before
        assert int(s.query("SELECT count() FROM older_shard.action")) not in (0, 60)
    for s in shards:  # whichever server a writer repeats it at
        s.query(f"INSERT INTO older.action (ap_id, ts, value) {rows}", **sent)
        assert s.rows("SELECT count(), sum(value), any(policy) FROM older.action") == [["60", "1770", "rwnd-fair"]]


def test_a_server_that_does_not_know_the_secret_reads_nothing(shards, database, tmp_path):
    database.insert("packet", packets(["a"]), **WRITER)
    stranger = Server(tmp_path)
    stranger.join(shards, secret="guessed")
    stranger.start()
    try:
        with pytest.raises(
            QueryError,
            match=(
                "AUTHENTICATION_FAILED|ALL_CONNECTION_TRIES_FAILED|ATTEMPT_TO_READ_AFTER_EOF|Interserver authentication"
                " failed"
            ),
        ):
            stranger.query("SELECT count() FROM cluster('oal', 'oal_shard', 'packet')")
    finally:
        stranger.kill()


def test_rows_of_a_single_server_are_not_hidden_behind_a_cluster(shards, tmp_path):
    few = ("--database", "alone", "--folder", str(first_files(tmp_path / "few", 2)))
    assert run_migrate("--url", shards[0].url, *few).returncode == 0
    done = migrate(shards, *few)
    assert (
        done.returncode == 1 and "holds tables of a single server" in done.stderr and "docs/upgrade.md" in done.stderr
    )


@pytest.mark.parametrize("arguments",
                         [["--url", "http://a:1", "--url", "http://b:1"], ["--replicated"], ["--cluster", "a'b"]])
def test_what_makes_no_sense_is_refused(arguments):
    done = run_migrate(*arguments, "--wait", "0.1")
    assert done.returncode == 1 and "--cluster" in done.stderr


def test_copies_are_asked_for_in_every_table_and_remember_tokens(migrate_module):
    """No engine that can be had here talks to Keeper: this is about the words."""
    tables = [
        s for m in migrate_module.load(FOLDER / "migrations") for s in m.statements if s.startswith("CREATE TABLE")
    ]
    assert len(tables) > 40
    for statement in tables:
        copied = migrate_module.replicated(statement)
        assert re.search(
            r"^ENGINE = Replicated(Aggregating)?MergeTree\('/clickhouse/tables/\{shard\}/\{database\}/\{table\}',"
            r" '\{replica\}'\)$",
            copied,
            re.M,
        ), copied
        assert (
            " replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 31536000," in copied
            and "non_replicated" not in copied
        )
    others = [
        s for m in migrate_module.load(FOLDER / "migrations") for s in m.statements if not s.startswith("CREATE TABLE")
    ]
    assert all(migrate_module.replicated(s) == s for s in others)
