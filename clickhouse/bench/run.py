"""Benchmark of the database as migrated: insert rate, size per row, time of the analysts' questions.

    python bench/run.py [--aps 10] [--minutes 60] [--out FILE]

A ClickHouse server of its own, migrated, rollups on. Rows come from generate.py (synthetic; sizes on disk depend on it).
Insert: for each step of simulated time, every table's rows of all APs are made in staging tables and fetched in Native
format; then only the POSTs into the real tables are timed, one table after the other, as one writer would send them, with
deduplication tokens. Questions: each query of README.md's list over the whole range, its median of five runs after the
file cache was dropped from ClickHouse's own caches. Result: a JSON list of {name, value, unit, command, note}.
"""

from __future__ import annotations

import argparse
import json
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

import generate  # noqa: E402
import questions  # noqa: E402
from server import Server  # noqa: E402

RAW = ["station", "station_ac", "channel", "queue", "beacon", "packet", "flow", "drop_event", "health"]
STEP_BATCHES = 240  # about a minute: at 10 APs half a million rows
RUNS = 5


def post(server: Server, table: str, body: bytes, token: str) -> None:
    settings = {"query": f"INSERT INTO oal.{table} FORMAT Native", "async_insert": 0, "insert_deduplication_token": token, "deduplicate_blocks_in_dependent_materialized_views": 1}
    urllib.request.urlopen(urllib.request.Request(f"{server.url}/?{urllib.parse.urlencode(settings)}", data=body), timeout=600).read()


def native(server: Server, select: str, columns: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(server.url + "/?database=staging", data=f"SELECT {columns} FROM ({select}) FORMAT Native".encode()), timeout=600) as answer:
        return answer.read()


def insert(server: Server, aps: int, minutes: int) -> tuple[int, float, int]:
    """Fill the tables; rows, seconds spent in POSTs, bytes posted."""
    batches = minutes * 60_000_000 // generate.BATCH_US
    now_us = int(time.time() * 1e6)
    t0_us = now_us - batches * generate.BATCH_US
    t0_us -= t0_us % 100_000
    rows = posted = 0
    spent = 0.0
    for first in range(0, batches, STEP_BATCHES):
        step = min(STEP_BATCHES, batches - first)
        for table, select in generate.selects(aps, t0_us, first, step).items():
            server.query(f"INSERT INTO staging.{table} {select}")
            columns = server.query(f"SELECT arrayStringConcat(groupArray(name), ', ') FROM (SELECT name FROM system.columns WHERE database = 'staging' AND table = '{table}' AND default_kind != 'MATERIALIZED' ORDER BY position)").strip()
            body = native(server, f"SELECT * FROM staging.{table}", columns)
            server.query(f"TRUNCATE TABLE staging.{table}")
            started = time.perf_counter()
            post(server, table, body, f"{table}-{first}")
            spent += time.perf_counter() - started
            posted += len(body)
        now = int(server.query("SELECT sum(rows) FROM system.parts WHERE database = 'oal' AND active AND table IN ({})".format(", ".join(f"'{t}'" for t in RAW + ["label", "item", "batch"]))))
        rows = now
        print(f"bench: {(first + step) * generate.BATCH_US / 60e6:5.1f} of {minutes} minutes, {rows:,} rows, {rows / spent:,.0f} rows/s", file=sys.stderr, flush=True)
    return rows, spent, posted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aps", type=int, default=10)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--out", type=Path, default=FOLDER.parent / "build" / "bench" / "clickhouse.json")
    options = parser.parse_args()
    command = f"make -C clickhouse bench  # {options.aps} APs, {options.minutes} minutes"
    results = []

    def add(name, value, unit, note):
        results.append({"name": name, "value": value, "unit": unit, "command": command, "note": note})
        print(f"bench: {name} = {value} {unit} ({note})", flush=True)

    with tempfile.TemporaryDirectory(prefix="oal-clickhouse-bench-") as home:
        server = Server(Path(home)).start()
        try:
            subprocess.run([sys.executable, str(FOLDER / "migrate"), "--url", server.url], check=True, stdout=subprocess.DEVNULL)
            server.query("CREATE DATABASE staging")
            for table in RAW + ["label", "item", "batch"]:
                server.query(f"CREATE TABLE staging.{table} AS oal.{table} ENGINE = Memory")
            rows, spent, posted = insert(server, options.aps, options.minutes)
            add("clickhouse_insert", round(rows / spent), "rows/s", f"{rows:,} rows of {options.aps} APs and {options.minutes} minutes, Native over HTTP, one writer, all tables in proportion, rollups and deduplication on; {posted / rows:.0f} B/row on the wire")
            raw_rows = int(server.query("SELECT sum(rows) FROM system.parts WHERE database = 'oal' AND active AND table IN ({})".format(", ".join(f"'{t}'" for t in RAW))))
            add("clickhouse_raw_rows", raw_rows, "rows", "rows in the nine raw tables when the questions were asked")
            for table, row_count, size in (r for r in server.rows("SELECT table, sum(rows), sum(data_compressed_bytes) FROM system.parts WHERE database = 'oal' AND active AND table != 'schema_migrations' GROUP BY table ORDER BY table")):
                add(f"clickhouse_bytes_per_row_{table}", round(int(size) / int(row_count), 2), "B/row", f"{int(row_count):,} rows, compressed, synthetic data of bench/generate.py, parts as merged so far")
            for q in questions.load():
                sql = q.over(options.minutes)
                times = []
                for _ in range(RUNS):
                    for cache in ("MARK CACHE", "UNCOMPRESSED CACHE", "QUERY CACHE"):
                        server.query(f"SYSTEM DROP {cache}")
                    started = time.perf_counter()
                    server.query(sql, database="oal")
                    times.append(time.perf_counter() - started)
                add(f"clickhouse_question_{q.number}", round(statistics.median(times) * 1000), "ms", f"{q.title} over {options.minutes} minutes of {options.aps} APs: median of {RUNS}, worst {max(times) * 1000:.0f} ms, ClickHouse's caches dropped before each, the kernel's not")
        finally:
            server.stop()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
