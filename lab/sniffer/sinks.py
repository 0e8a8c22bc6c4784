"""Where rows go: a compact file, and Kafka as records of platform.events.v1."""
from __future__ import annotations

import functools
import gzip
import json
import sys
import time
from pathlib import Path
from typing import IO

from .rows import COLUMNS

TOPIC, TABLE = "platform.events.v1", "sender_tcp"
MAX_ROWS = 2000  # of a record: about 500 KB
MAX_QUEUED = 64  # records that Kafka has not taken yet; the next is let go and counted
COMPLAIN_S = 60  # between two messages about Kafka
FLUSH_S = 5  # at the end, for what is under way


class SinkError(Exception):
    """What is missing, and how to get it."""


def chunks(rows: list[dict]):
    for at in range(0, len(rows), MAX_ROWS):
        yield rows[at:at + MAX_ROWS]


class File:
    """Gzipped lines of JSON: `{"columns": [...]}`, then an array per row in that order. Times count from the row
    before.
    """

    def __init__(self, path: str):
        try:
            self.file = gzip.open(path, "wt", compresslevel=6, newline="\n")
        except OSError as error:
            raise SinkError(f"cannot write {path}: {error.strerror}") from error
        self.file.write(json.dumps({"columns": COLUMNS}) + "\n")
        self.last_us = 0
        self.let_go = 0

    def write(self, rows: list[dict]) -> None:
        for r in rows:
            values = [r[c] for c in COLUMNS]
            values[0], self.last_us = r["ts"] - self.last_us, r["ts"]
            self.file.write(json.dumps(values, separators=(",", ":")) + "\n")
        self.file.flush()  # so that a running file can be read, and a kill loses a quarter of a second

    def close(self) -> None:
        self.file.close()


def read(path: str | Path):
    """The rows of a file of `File`, as dicts. Raises ValueError where it is none; one that was cut short gives what is
    whole.
    """
    with gzip.open(path, "rt") as f:
        try:
            columns = json.loads(f.readline())["columns"]
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} was not written by oal-sniffer") from error
        ts = 0
        while line := next_line(f):
            values = json.loads(line)
            ts = values[0] = ts + values[0]
            yield dict(zip(columns, values, strict=True))


def next_line(f: IO[str]) -> str:
    try:
        line = f.readline()
    except EOFError:
        return ""
    return line if line.endswith("\n") else ""


class Lines:
    """JSON, a row a line, for people and pipes."""

    def __init__(self, out: IO[str]):
        self.out, self.let_go = out, 0

    def write(self, rows: list[dict]) -> None:
        self.out.writelines(json.dumps(r) + "\n" for r in rows)
        self.out.flush()

    def close(self) -> None:
        pass


class Kafka:
    """Records of platform.events.v1, keyed by host. Never waits: what Kafka does not take in time is counted in let_go.
    """

    def __init__(self, host: str, options: dict):
        try:
            import confluent_kafka
        except ImportError as error:
            raise SinkError(
                "streaming to Kafka needs the Python package confluent-kafka (lab/requirements.txt)") from error
        try:
            self.producer = confluent_kafka.Producer({
                "linger.ms": 50, "compression.type": "lz4", "message.timeout.ms": 120000, "log_level": 2,
                "error_cb": self.complain, **options
            })
        except confluent_kafka.KafkaException as error:
            raise SinkError(f"Kafka options: {error.args[0].str()}") from error
        self.host, self.let_go, self.under_way = host, 0, 0  # in rows
        self.complained_s = -COMPLAIN_S

    def complain(self, error) -> None:
        if time.monotonic() >= self.complained_s + COMPLAIN_S:
            self.complained_s = time.monotonic()
            print(f"oal-sniffer: Kafka: {error.str()}", file=sys.stderr, flush=True)

    def write(self, rows: list[dict]) -> None:
        for part in chunks(rows):
            if len(self.producer) >= MAX_QUEUED:
                self.let_go += len(part)
                continue
            self.under_way += len(part)
            value = json.dumps({"table": TABLE, "rows": part}, separators=(",", ":"))
            self.producer.produce(TOPIC, key=self.host, value=value,
                                  on_delivery=functools.partial(self.delivered, len(part)))
        self.producer.poll(0)

    def delivered(self, rows: int, error, _) -> None:
        self.under_way -= rows
        self.let_go += rows if error else 0

    def close(self) -> None:
        self.producer.flush(FLUSH_S)
        self.let_go += self.under_way
