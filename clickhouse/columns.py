"""What the contract's column lists have that the migrated tables lack, as the next migration: `make migration
NAME=what`.

The lists are schema/generated/clickhouse/*.columns.sql. A server of its own gets all migrations; each table is compared
with one that is made from its list there, so that ClickHouse itself writes types and codecs of both in the same way.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
MIGRATIONS = FOLDER / "migrations"
GENERATED = FOLDER.parent / "schema" / "generated"


class Impossible(Exception):
    """No migration can be written from the lists alone; says what to write by hand."""


@dataclass
class Contract:
    """The tables of schema/generated, or of a copy of it."""

    folder: Path = GENERATED
    document: dict = field(init=False)

    def __post_init__(self):
        self.document = json.loads((self.folder / "schema.json").read_text())

    @property
    def raw(self) -> list[str]:
        """Tables that access points send, without those that are stored as another one."""
        return [t["name"] for t in self.document["tables"] if t["stored_as"] == t["name"]]

    @property
    def renamed(self) -> list[dict]:
        """Tables that are stored as another one; here they are views of it."""
        return [t for t in self.document["tables"] if t["stored_as"] != t["name"]]

    @property
    def tables(self) -> list[str]:
        return self.raw + [t for t in self.document["stream_tables"] if t not in self.raw]

    def types(self, table: str) -> dict[str, str]:
        """column → its type."""
        raw = {t["name"]: t["clickhouse"] for t in self.document["tables"]}
        derived = self.document["stream_tables"].get(table, {"columns": []})["columns"]
        return {c["name"]: c["type"] for c in [*raw.get(table, []), *derived]}

    def lines(self, table: str) -> dict[str, str]:
        """column → its line, as in ALTER TABLE … ADD COLUMN."""
        text = (self.folder / "clickhouse" / f"{table}.columns.sql").read_text()
        return {re.match(r"\s*`(\w+)`", line).group(1): line.strip() for line in text.strip().split(",\n")}


def _columns(query, table: str, codecs: bool) -> dict[str, list[str]]:
    """column → type, default and comment (and codec), as the server says them."""
    more = ", compression_codec" if codecs else ""
    rows = query(f"SELECT name, type, default_expression, comment{more} FROM system.columns WHERE database ="
                 f" currentDatabase() AND table = '{table}' AND default_kind != 'MATERIALIZED' ORDER BY position")
    return {line.split("\t")[0]: line.split("\t")[1:] for line in rows.splitlines()}


def alters(query, contract: Contract, table: str) -> list[str]:
    """Statements that give the table its list's columns, in the list's order. `query` runs SQL in a migrated database,
    which a table `contract_…` is made in and taken from again. Raises Impossible for a table that is not there.
    """
    lines = contract.lines(table)
    codecs = table in contract.raw  # the contract leaves the codecs of derived tables to this folder
    have = _columns(query, table, codecs)
    if not have:
        raise Impossible(f"there is no table {table}: write its CREATE TABLE (engine, order, expiry) as a migration by"
                         f" hand, with the columns of {table}.columns.sql; control's in 0013 is one to go by")
    query(f"CREATE TABLE contract_{table} ({', '.join(lines.values())}) ENGINE = MergeTree ORDER BY tuple()")
    try:
        want = _columns(query, f"contract_{table}", codecs)
    finally:
        query(f"DROP TABLE contract_{table} SYNC")
    found = [f"ALTER TABLE {table} DROP COLUMN IF EXISTS {name};" for name in have if name not in want]
    order, previous = [name for name in have if name in want], None
    for place, name in enumerate(want):
        after = f"AFTER {previous}" if previous else "FIRST"
        if name not in have:
            found.append(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {lines[name]} {after};")
            order.insert(place, name)
        elif have[name] != want[name] or order[place] != name:
            moved = f" {after}" if order[place] != name else ""
            found.append(f"ALTER TABLE {table} MODIFY COLUMN {lines[name]}{moved};")
            order.remove(name)
            order.insert(place, name)
        previous = name
    return found


def difference(query, contract: Contract) -> list[str]:
    """Statements for all tables."""
    return [statement for table in contract.tables for statement in alters(query, contract, table)]


def write(statements: list[str], name: str, why: str, migrations: Path = MIGRATIONS) -> Path:
    """The next numbered file, and its line in SHA256SUMS."""
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise Impossible(f"NAME={name}: small letters, digits and _ only")
    path = migrations / f"{len(list(migrations.glob('*.sql'))) + 1:04d}_{name}.sql"
    path.write_text(f"-- {why}\n" + "".join(f"{s}\n" for s in statements))
    with (migrations / "SHA256SUMS").open("a") as sums:
        sums.write(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    return path


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="what the migration is about, as in NNNN_name.sql")
    parser.add_argument("--generated", type=Path, default=GENERATED, help="the contract (default %(default)s)")
    parser.add_argument("--migrations", type=Path, default=MIGRATIONS, help="where it goes (default %(default)s)")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(FOLDER / "tests"))
    from server import Server

    with tempfile.TemporaryDirectory(prefix="oal-clickhouse-migration-") as home:
        server = Server(Path(home)).start()
        try:
            subprocess.run([sys.executable, str(FOLDER / "migrate"), "--url", server.url, "--folder",
                            str(options.migrations)], check=True, stdout=subprocess.DEVNULL)
            found = difference(lambda sql: server.query(sql, database="oal"), Contract(options.generated))
            if not found:
                print("The tables have the contract's columns: nothing to write.")
                return 0
            why = f"Columns as schema/ has them: {options.name.replace('_', ' ')}."
            path = write(found, options.name, why, options.migrations)
        except (Impossible, subprocess.CalledProcessError) as e:
            print(f"columns: {e}", file=sys.stderr)
            return 1
        finally:
            server.stop()
    print(f"{path}:\n{path.read_text()}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
