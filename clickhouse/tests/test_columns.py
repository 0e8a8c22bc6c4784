"""The database has the columns of the contract: name, type, codec and comment, in the contract's order."""

import json
import re

import pytest
import yaml
from conftest import FOLDER

SCHEMA = FOLDER.parent / "schema"
CONTRACT = json.loads((SCHEMA / "generated" / "schema.json").read_text())
RAW = [t["name"] for t in CONTRACT["tables"] if t["stored_as"] == t["name"]]
RENAMED = [t for t in CONTRACT["tables"] if t["stored_as"] != t["name"]]
TABLES = RAW + list(CONTRACT["stream_tables"])


def generated(table: str) -> dict[str, str]:
    """column → its line of schema/generated/clickhouse, as it would stand in ALTER TABLE … ADD COLUMN."""
    lines = (SCHEMA / "generated" / "clickhouse" / f"{table}.columns.sql").read_text().strip().split(",\n")
    return {re.match(r"\s*`(\w+)`", line).group(1): line.strip() for line in lines}


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_those_of_the_contract(filled, table):
    """Compared with a table that is made from the generated list, so that ClickHouse itself normalises both."""
    lines = generated(table)
    raw = table in RAW
    filled.query(
        f"CREATE TABLE IF NOT EXISTS contract_{table} ({', '.join(lines.values())}) ENGINE = MergeTree ORDER BY tuple()"
    )
    try:
        ask = (
            "SELECT name, type, comment, compression_codec FROM system.columns WHERE database = currentDatabase() AND"
            " table = '{}' AND default_kind != 'MATERIALIZED' ORDER BY position"
        )
        want = {r[0]: r[1:] for r in filled.rows(ask.format(f"contract_{table}"))}
        have = {r[0]: r[1:] for r in filled.rows(ask.format(table))}
    finally:
        filled.query(f"DROP TABLE contract_{table} SYNC")
    if not raw:  # the contract leaves the codecs of derived tables to this folder
        want, have = ({n: c[:2] for n, c in columns.items()} for columns in (want, have))
    alters, previous = [], None
    for name in want:
        if name not in have:
            alters.append(
                f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {lines[name]}"
                f" {f'AFTER {previous}' if previous else 'FIRST'};"
            )
        elif have[name] != want[name]:
            alters.append(f"ALTER TABLE {table} MODIFY COLUMN {lines[name]};")
        previous = name
    alters += [f"ALTER TABLE {table} DROP COLUMN IF EXISTS {name};" for name in have if name not in want]
    number = len(list((FOLDER / "migrations").glob("*.sql"))) + 1
    assert not alters, f"schema/ has changed. Write clickhouse/migrations/{number:04d}_….sql with:\n" + "\n".join(
        alters)
    assert list(have) == list(want), "the columns stand in another order"


@pytest.mark.parametrize("table", RENAMED, ids=lambda t: t["name"])
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
        "SELECT DISTINCT table FROM system.columns WHERE database = currentDatabase() AND (type LIKE '%IPv%' OR name ="
        " 'payload') AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE"
        " '%MergeTree')"
    )
    assert {r[0] for r in rows} == {"packet", "flow", "flow_1m", "dead_letter"}
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
        assert made == list(generated(table)), table
