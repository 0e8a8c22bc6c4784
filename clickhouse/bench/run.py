"""Benchmark of the database as migrated: insert rate, size per row, time of the analysts' questions.

    python bench/run.py [--aps 10] [--minutes 60] [--captures FOLDER] [--out FILE]

A ClickHouse server of its own, migrated, rollups on. Inserts: every table's rows of one step of simulated time are made
in staging tables and fetched in Native format; then only the POSTs into the real tables are timed, one table after the
other, as one writer would send them, with deduplication tokens. Three times: blocks of a second (what the stream jobs
send), the captures of lab/captures played over and over by the access points (as the exporter's replay does it;
counters restart with each turn), and the whole range from generate.py (synthetic). Sizes: raw tables and their rollups
from the captures, each stored once, because one that is repeated compresses better than it should; the others
synthetic. Questions: each query of README.md's list over the whole synthetic range, median of five runs with
ClickHouse's own caches dropped before each. Result: a JSON list of {name, value, unit, command, note}.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(FOLDER / "tests"), str(FOLDER / "bench")]

import ap_columns  # noqa: E402
import generate  # noqa: E402
import questions  # noqa: E402
from server import Server  # noqa: E402

RAW = ["station", "station_ac", "channel", "queue", "beacon", "packet", "flow", "drop_event", "health"]
TABLES = RAW + [table for table in generate.selects(1, 0, 0, 1) if table not in RAW]
STEP_BATCHES = 240  # about a minute: at 10 APs half a million rows
RUNS = 5
PLAYED_MINUTES = 2  # of captures: an AP of the lab sends 3,700 rows a second
CAPTURE_START_US = 1_000_000_000_000_000  # capture.py's START_S


def migrate(server: Server, database: str) -> None:
    subprocess.run(
        [sys.executable, str(FOLDER / "migrate"), "--url", server.url, "--database", database], check=True,
        stdout=subprocess.DEVNULL)


def post(server: Server, database: str, table: str, body: bytes, token: str) -> None:
    settings = {
        "query": f"INSERT INTO {database}.{table} FORMAT Native", "async_insert": 0,
        "insert_deduplication_token": token, "deduplicate_blocks_in_dependent_materialized_views": 1
    }
    urllib.request.urlopen(urllib.request.Request(f"{server.url}/?{urllib.parse.urlencode(settings)}", data=body),
                           timeout=600).read()


def native(server: Server, select: str, columns: str) -> bytes:
    with urllib.request.urlopen(
            urllib.request.Request(server.url + "/?database=staging",
                                   data=f"SELECT {columns} FROM ({select}) FORMAT Native".encode()),
            timeout=600) as answer:
        return answer.read()


class Synthetic:
    """Steps from generate.py."""

    def __init__(self, aps: int, minutes: int, step_batches: int = STEP_BATCHES, steps: int | None = None):
        self.aps, self.batches, self.name = (
            aps,
            minutes * 60_000_000 // generate.BATCH_US,
            "synthetic rows of bench/generate.py",
        )
        self.step_batches = step_batches
        if steps:
            self.batches = min(self.batches, steps * step_batches)

    def steps(self, t0_us: int):
        """(minutes done, table → SELECT) of each step."""
        for first in range(0, self.batches, self.step_batches):
            step = min(self.step_batches, self.batches - first)
            yield (first + step) * generate.BATCH_US / 60e6, generate.selects(self.aps, t0_us, first, step)


class Captures:
    """Steps of one turn of the captures; AP number k plays capture k modulo their number."""

    def __init__(self, server: Server, files: list[Path], aps: int, minutes: int):
        self.aps, self.end_us, self.name = aps, minutes * 60_000_000, "rows of " + ", ".join(f.name for f in files)
        self.count = len(files)
        lengths = []
        for i, f in enumerate(files):
            server.query(f"CREATE DATABASE capture{i}")
            with tempfile.TemporaryDirectory(prefix="oal-capture-") as folder:
                done = subprocess.run(
                    [schema_python(), str(FOLDER / "bench" / "capture.py"),
                     str(f), folder], check=True, capture_output=True, text=True,
                    env={**os.environ, "PYTHONPATH": str(FOLDER.parent / "schema" / "src")})
                lengths.append(json.loads(done.stdout)["us"])
                for table in RAW:
                    server.query(f"CREATE TABLE capture{i}.{table} AS oal.{table} ENGINE = Memory")
                    body = (Path(folder) / f"{table}.tsv").read_bytes()
                    if body:
                        server.query(f"INSERT INTO capture{i}.{table} FORMAT TSV", data=body)
        # Whole batches, and as long as the shortest capture, so that turns of all APs begin together.
        self.batches = min(lengths) // generate.BATCH_US
        self.turn_us = self.batches * generate.BATCH_US

    def steps(self, t0_us: int):
        turns = -(-self.end_us // self.turn_us)
        each = -(-60_000_000 // self.turn_us)  # turns of a step: a minute or more
        for first in range(0, turns, each):
            last = min(first + each, turns)
            synthetic = generate.selects(self.aps, t0_us, first * self.batches, (last - first) * self.batches)
            selects = {t: synthetic[t] for t in ("label", "item", "batch")}
            for table in RAW:
                selects[table] = " UNION ALL ".join(
                    f"SELECT * REPLACE ('{ap_columns.ap(k)}' AS ap_id, c.ts +"
                    f" toIntervalMicrosecond({t0_us + turn * self.turn_us - CAPTURE_START_US}) AS ts, c.boot_id + {k}"
                    f" AS boot_id, c.batch_seq + {turn * self.batches} AS batch_seq) FROM"
                    f" capture{k % self.count}.{table} AS c WHERE toUnixTimestamp64Micro(c.ts) <"
                    f" {CAPTURE_START_US + self.turn_us}"
                    for k in range(1, self.aps + 1)
                    for turn in range(first, last)
                )
            yield last * self.turn_us / 60e6, selects


def schema_python() -> str:
    """Python with what schema's reference codec needs."""
    venv = subprocess.run([
        "bash",
        str(FOLDER.parent / "platform" / "setup" / "venv"),
        str(FOLDER.parent / "schema" / "requirements.txt")
    ], check=True, stdout=subprocess.PIPE, text=True)
    return venv.stdout.strip() + "/bin/python"


def insert(server: Server, source, t0_us: int, database: str) -> tuple[int, float, int]:
    """Fill the tables; rows, seconds spent in POSTs, bytes posted."""
    said = 0.0
    columns = {table: column_list(server, table) for table in TABLES}
    rows = posted = 0
    spent = 0.0
    for done_minutes, selects in source.steps(t0_us):
        for table, select in selects.items():
            server.query(f"INSERT INTO staging.{table} ({columns[table]}) {select}")
            rows += int(server.query(f"SELECT count() FROM staging.{table}"))
            if not int(server.query(f"SELECT count() FROM staging.{table}")):
                continue  # a step in which no tree was shipped
            body = native(server, f"SELECT * FROM staging.{table}", columns[table])
            server.query(f"TRUNCATE TABLE staging.{table}")
            started = time.perf_counter()
            post(server, database, table, body, f"{table}-{done_minutes}")
            spent += time.perf_counter() - started
            posted += len(body)
        if time.monotonic() - said > 5:
            said = time.monotonic()
            print(f"bench: minute {done_minutes:.1f}, {rows:,} rows, {rows / spent:,.0f} rows/s", file=sys.stderr,
                  flush=True)
    kept = count(server, database, TABLES)
    if kept != rows:
        raise SystemExit(f"bench: {rows:,} rows were sent, {kept:,} are there")
    return rows, spent, posted


def sizes(server: Server, played, whole, add) -> None:
    """Bytes per row of every table."""
    if played:
        migrate(server, "once")
        shift_us = int(time.time() * 1e6) - 3_600_000_000 - CAPTURE_START_US  # within every TTL
        for table in RAW:
            columns = column_list(server, table)
            for i in range(played.count):
                server.query(
                    f"INSERT INTO once.{table} ({columns}) SELECT * REPLACE ('{ap_columns.ap(i)}' AS ap_id, c.ts +"
                    f" toIntervalMicrosecond({shift_us}) AS ts) FROM capture{i}.{table} AS c"
                )
    for (table,) in server.rows(
        "SELECT name FROM system.tables WHERE database = 'oal' AND engine LIKE '%MergeTree' AND name !="
        " 'schema_migrations' ORDER BY name"
    ):
        database, note = "oal", f"parts as merged so far; {whole.name}"
        if played and table.split("_1")[0] in RAW:
            server.query(f"OPTIMIZE TABLE once.{table} FINAL")
            if int(server.query(f"SELECT count() FROM once.{table}")):
                database, note = "once", f"merged; {played.name}, each once"
        ((rows, size),) = server.rows(
            f"SELECT sum(rows), sum(data_compressed_bytes) FROM system.parts WHERE database = '{database}' AND active"
            f" AND table = '{table}'"
        )
        if int(rows):
            add(f"clickhouse_bytes_per_row_{table}", round(int(size) / int(rows), 2), "B/row",
                f"{int(rows):,} rows, compressed; {note}")


def column_list(server: Server, table: str) -> str:
    """The columns that are inserted, in order."""
    return ", ".join(
        r[0]
        for r in server.rows(
            f"SELECT name FROM system.columns WHERE database = 'oal' AND table = '{table}' AND default_kind !="
            " 'MATERIALIZED' ORDER BY position"
        )
    )


def count(server: Server, database: str, tables: list[str]) -> int:
    return int(
        server.query(
            f"SELECT sum(rows) FROM system.parts WHERE database = '{database}' AND active AND table IN"
            f" ({', '.join(repr(t) for t in tables)})"
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aps", type=int, default=10)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--captures", type=Path, default=FOLDER.parent / "lab" / "captures",
                        help="folder of .oalcap files")
    parser.add_argument("--out", type=Path, default=FOLDER.parent / "build" / "bench" / "clickhouse.json")
    options = parser.parse_args()
    command = f"make -C clickhouse bench  # {options.aps} APs, {options.minutes} minutes"
    results = []

    def add(name, value, unit, note):
        results.append({"name": name, "value": value, "unit": unit, "command": command, "note": note})
        print(f"bench: {name} = {value} {unit} ({note})", flush=True)

    with tempfile.TemporaryDirectory(prefix="oal-clickhouse-bench-") as home:
        server = Server(Path(home), compiled=True).start()
        try:
            migrate(server, "oal")
            server.query("CREATE DATABASE staging")
            for table in TABLES:
                server.query(f"CREATE TABLE staging.{table} AS oal.{table} ENGINE = Memory")
            t0_us = int(time.time() * 1e6) - options.minutes * 60_000_000
            t0_us -= t0_us % 100_000
            how = "Native over HTTP, one writer, all tables in proportion, rollups and deduplication on"
            captures = sorted(options.captures.glob("*.oalcap"))
            played = Captures(server, captures, options.aps, PLAYED_MINUTES) if captures else None
            whole = Synthetic(options.aps, options.minutes)
            for name, database, source, blocks in (
                ("clickhouse_insert_one_second_blocks", "blocks", Synthetic(options.aps, 1, 4, 20),
                 "an INSERT per table and second of all APs, as the stream jobs send them"),
                ("clickhouse_insert_captures", "played", played, "blocks of a minute of all APs"),
                ("clickhouse_insert", "oal", whole, "blocks of a minute of all APs"),
            ):
                if source:
                    migrate(server, database)
                    rows, spent, posted = insert(server, source, t0_us, database)
                    add(
                        name,
                        round(rows / spent),
                        "rows/s",
                        f"{rows:,} rows of {options.aps} APs, {source.name}; {blocks}; {how}; {posted / rows:.0f} B/row"
                        f" on the wire; load average {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores",
                    )
                    if database != "oal":
                        server.query(f"DROP DATABASE {database} SYNC")
            add("clickhouse_raw_rows", count(server, "oal", RAW), "rows",
                "rows in the nine raw tables when the questions were asked")
            sizes(server, played, whole, add)
            for q in questions.load():
                sql = q.over(options.minutes)
                if "mac = '" in sql:
                    busiest, *_ = server.rows(
                        "SELECT ap_id, MACNumToString(mac) FROM oal.station GROUP BY ap_id, mac ORDER BY count() DESC"
                        " LIMIT 1"
                    ) or [["ap-01", "02:00:00:00:01:00"]]
                    sql = re.sub(r"ap_id = '[^']*', mac = '[^']*'", "ap_id = '{}', mac = '{}'".format(*busiest), sql)
                times = []
                for _ in range(RUNS):
                    for cache in ("MARK CACHE", "UNCOMPRESSED CACHE", "QUERY CACHE"):
                        server.query(f"SYSTEM DROP {cache}")
                    started = time.perf_counter()
                    server.query(sql, database="oal")
                    times.append(time.perf_counter() - started)
                add(
                    f"clickhouse_question_{q.number}",
                    round(statistics.median(times) * 1000),
                    "ms",
                    f"{q.title} over {options.minutes} minutes of {options.aps} APs: median of {RUNS}, worst"
                    f" {max(times) * 1000:.0f} ms, ClickHouse's caches dropped before each, the kernel's not; load"
                    f" average {os.getloadavg()[0]:.0f}",
                )
        finally:
            server.stop()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
