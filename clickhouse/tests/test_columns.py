"""The database has the columns of the contract: name, type, codec and comment, in the contract's order."""

import hashlib
import re
import shutil

import columns
import pytest
import yaml
from conftest import FOLDER, migrated

SCHEMA = FOLDER.parent / "schema"
CONTRACT = columns.Contract()
TABLES = CONTRACT.tables


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_those_of_the_contract(filled, table):
    """Name, type, default, comment, of raw tables also the codec, and their order."""
    found = columns.alters(filled.query, CONTRACT, table)
    assert not found, "schema/ has changed: make -C clickhouse migration NAME=what\n" + "\n".join(found)


def test_a_column_of_the_contract_comes_by_a_migration_that_is_written_for_it(server, tmp_path):
    """In a copy: a raw table and a derived one get a column, one a new comment; nothing else is written by hand."""
    generated, migrations = tmp_path / "generated", tmp_path / "migrations"
    shutil.copytree(SCHEMA / "generated", generated)
    shutil.copytree(FOLDER / "migrations", migrations)
    for table, old, new in (
            ("station", "    `tx_bytes`",
             "    `naps` Nullable(UInt32) COMMENT 'Naps, the station\\'s' CODEC(ZSTD(1)),\n    `tx_bytes`"),
            ("gap", "`ap_id` LowCardinality(String) COMMENT 'Access point'",
             "`ap_id` LowCardinality(String) COMMENT 'The access point',\n    `blame` UInt8 DEFAULT 3 COMMENT 'Why'"),
    ):
        path = generated / "clickhouse" / f"{table}.columns.sql"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))
    assert columns.main(["naps", "--generated", str(generated), "--migrations", str(migrations)]) == 0
    path = sorted(migrations.glob("*.sql"))[-1]
    assert path.name == f"{len(list(migrations.glob('*.sql'))):04d}_naps.sql"
    assert [line.split(" `")[0] for line in path.read_text().splitlines()] == [
        "-- Columns as schema/ has them: naps.", "ALTER TABLE station ADD COLUMN IF NOT EXISTS",
        "ALTER TABLE gap MODIFY COLUMN", "ALTER TABLE gap ADD COLUMN IF NOT EXISTS"]
    database = migrated(server, "grown", "--folder", str(migrations))
    assert database.rows(
        "SELECT table, name, type, default_expression, comment, compression_codec FROM system.columns WHERE database ="
        " currentDatabase() AND name IN ('naps', 'blame') ORDER BY table") == [
            ["gap", "blame", "UInt8", "3", "Why", ""],
            ["station", "naps", "Nullable(UInt32)", "", "Naps, the station\\'s", "CODEC(ZSTD(1))"]]
    assert columns.difference(database.query, columns.Contract(generated)) == []
    listed = (migrations / "SHA256SUMS").read_text().splitlines()[-1]
    assert listed == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"


def test_a_table_of_the_contract_that_is_not_there_is_said_to_be_missing(filled):
    contract = columns.Contract()
    contract.lines = lambda table: {"a": "`a` UInt8"}
    with pytest.raises(columns.Impossible, match="no table nowhere: write its CREATE TABLE"):
        columns.alters(filled.query, contract, "nowhere")


@pytest.mark.parametrize("table", CONTRACT.renamed, ids=lambda t: t["name"])
def test_a_table_stored_elsewhere_is_a_view_with_its_columns(filled, table):
    have = [r[:2] for r in filled.rows(f"DESCRIBE TABLE {table['name']} FORMAT TSVRaw")]
    assert have == [[c["name"], c["type"]] for c in table["clickhouse"]]
    assert filled.rows(f"SELECT engine FROM system.tables WHERE database = currentDatabase() AND name ="
                       f" '{table['name']}'") == [["View"]]


def test_no_table_of_the_contract_is_missing_or_unknown(filled):
    raw_and_derived = {
        r[0] for r in filled.rows(
            "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'MergeTree'")
    }
    assert raw_and_derived == {*TABLES, "platform_metric"}  # Telegraf's, of which the contract knows nothing


def test_every_column_and_every_table_has_a_comment(filled):
    tables = "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
    assert (
        filled.rows(
            "SELECT table, name FROM system.columns WHERE database = currentDatabase() AND comment = '' AND table IN"
            f" ({tables})"
        )
        == []
    )
    assert (
        filled.rows(
            "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree' AND comment"
            " = ''"
        )
        == []
    )


def test_every_table_expires_by_whole_parts_and_remembers_insertions(filled):
    rows = filled.rows(
        "SELECT name, create_table_query FROM system.tables WHERE database = currentDatabase() AND engine LIKE"
        " '%MergeTree' AND name != 'schema_migrations'"
    )
    assert len(rows) >= len(TABLES) + 10
    for name, ddl in rows:
        assert "ttl_only_drop_parts = 1" in ddl and "TTL " in ddl, name
        assert "non_replicated_deduplication_window = 10000" in ddl, name


def test_addresses_live_for_seven_days_only(filled):
    """PRIVACY.md promises it: every table with an address or a whole record."""
    rows = filled.rows(
        "SELECT DISTINCT table FROM system.columns WHERE database = currentDatabase() AND (type LIKE '%IPv%' OR name IN"
        " ('payload', 'client_network')) AND table IN (SELECT name FROM system.tables WHERE database ="
        " currentDatabase() AND engine LIKE '%MergeTree')"
    )
    assert {r[0] for r in rows} == {"packet", "flow", "flow_1m", "dead_letter", "sender_tcp",
                                     "sender_session", "sender_session_1m"}
    for (table,) in rows:
        assert "toIntervalDay(7)" in filled.query(f"SHOW CREATE TABLE {table}"), table


def test_settings_that_stand_in_the_sql_are_those_of_the_contract():
    settings = yaml.safe_load((SCHEMA / "settings.yaml").read_text())
    rollups = (FOLDER / "migrations" / "0003_rollups.sql").read_text()
    batch_us = settings["batch_ticks"] * settings["tick_us"]
    assert set(re.findall(r"opened_us \+ (\d+)", rollups)) == {str(batch_us)}
    latency = (FOLDER / "migrations" / "0009_rates_while_sending.sql").read_text()
    assert f"+ {settings['tick_us'] // 1000} * ticks" in latency and latency.count(
        f"sum(b.ticks) * {settings['tick_us'] / 1e6}") == 2
    import generate

    assert (generate.BATCH_US, generate.TICK_US) == (batch_us, settings["tick_us"])


def test_generated_rows_have_the_columns_of_their_tables(filled):
    import generate

    for table, select in generate.selects(1, 0, 0, 4).items():
        made = [r[0] for r in filled.rows(f"DESCRIBE ({select})")]
        assert made == list(CONTRACT.lines(table)), table
