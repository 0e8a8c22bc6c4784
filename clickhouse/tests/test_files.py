"""The files alone, without a server."""

import re

import columns
import pytest
from conftest import FOLDER, MIGRATE

CONTRACT = columns.Contract()


def columns_of_the_migrations() -> dict[str, list[str]]:
    """table → its columns after all migrations, in order, as far as the words of the statements tell."""
    tables: dict[str, list[str]] = {}
    for statement in (s for m in MIGRATE.load(FOLDER / "migrations") for s in m.statements):
        if created := re.match(r"CREATE TABLE IF NOT EXISTS (\w+)\s*\(", statement):
            tables[created[1]] = re.findall(r"^ {4}`(\w+)` (?!.* MATERIALIZED )", statement, re.M)
        elif renamed := re.fullmatch(r"RENAME TABLE IF EXISTS (\w+) TO (\w+)", statement):
            tables[renamed[2]] = tables.pop(renamed[1])
        elif renamed := re.fullmatch(r"ALTER TABLE (\w+) RENAME COLUMN IF EXISTS (\w+) TO (\w+)", statement):
            table = tables[renamed[1]]
            table[table.index(renamed[2])] = renamed[3]
        elif dropped := re.fullmatch(r"ALTER TABLE (\w+) DROP COLUMN IF EXISTS (\w+)", statement):
            tables[dropped[1]].remove(dropped[2])
        elif altered := re.match(r"ALTER TABLE (\w+) (?:ADD COLUMN IF NOT EXISTS|MODIFY COLUMN) `(\w+)` ", statement):
            table, place = tables[altered[1]], re.search(r" AFTER (\w+)$| (FIRST)$", statement)
            if place or altered[2] not in table:
                table[:] = [c for c in table if c != altered[2]]
                at = len(table) if not place else table.index(place[1]) + 1 if place[1] else 0
                table.insert(at, altered[2])
    return tables


@pytest.mark.parametrize("table", CONTRACT.tables)
def test_the_migrations_make_the_columns_of_the_contract(table):
    """Names and order; what they are, test_columns.py asks a server."""
    assert columns_of_the_migrations()[table] == list(CONTRACT.lines(table)), "make -C clickhouse migration NAME=what"


def test_every_statement_can_be_given_twice():
    again = re.compile(
        r"CREATE (TABLE|MATERIALIZED VIEW) IF NOT EXISTS |CREATE OR REPLACE VIEW |DROP (TABLE|VIEW) IF EXISTS "
        r"|RENAME TABLE IF EXISTS |ALTER TABLE \w+ (ADD (COLUMN|INDEX) IF NOT EXISTS|(DROP|RENAME) COLUMN IF EXISTS"
        r"|COMMENT COLUMN|MODIFY (COLUMN|COMMENT|TTL|SETTING|QUERY)) ")
    for m in MIGRATE.load(FOLDER / "migrations"):
        assert not [s.splitlines()[0] for s in m.statements if not again.match(s)], m.path.name
