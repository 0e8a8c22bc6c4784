"""Reading captures and sender files: against the contract's golden vectors, and what is damaged."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from oal_schema.wire import Refused
from oal_training.errors import TrainingError
from oal_training.window import capture, sender

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "schema/golden"
STEADY = ROOT / "lab/captures/steady.oalcap"


def golden_batches(name: str):
    data, at = (GOLDEN / name).read_bytes(), 0
    while at < len(data):
        topic, (length,) = data[at], struct.unpack_from("<I", data, at + 1)
        yield topic, data[at + 5 : at + 5 + length]
        at += 5 + length


@pytest.mark.parametrize("name", ["features", "extremes"])
def test_flow_rows_are_those_of_the_golden_vectors(name):
    expected, batch = [], -1
    for line in (GOLDEN / f"{name}.rows.txt").read_text().splitlines():
        what, *words = line.split()
        if what == "batch":
            batch += 1
        elif what == "flow" and len(words) > 7:  # 7: an entry of the dictionary
            expected.append((batch, words))
    found = []
    values = [c for c in capture.COLUMNS if c not in ("flow", "direction", "tick")]
    for number, (topic, body) in enumerate(golden_batches(f"{name}.bin")):
        if topic != capture.PACKETS or number > batch:
            continue
        _, rows = capture.flows_of(body)
        for i in range(len(rows.get("ts_us", ()))):
            found.append((number, [str(rows[c][i]) for c in ("ts_us", "absent", "flow", "direction", *values)]))
    assert len(expected) > 5
    assert found == expected


def test_a_damaged_record_costs_itself_only(tmp_path):
    whole = capture.flow_rows(STEADY)[0]
    data = bytearray(STEADY.read_bytes())
    second = data.index(capture.RECORD_MAGIC, len(data) // 2)
    data[second + 40] ^= 0xFF
    (tmp_path / "damaged.oalcap").write_bytes(bytes(data[:-100]))
    damaged, about = capture.flow_rows(tmp_path / "damaged.oalcap")
    assert 0.9 * len(whole["ts_us"]) < len(damaged["ts_us"]) < len(whole["ts_us"])
    assert about["ap_id"] and about["refused"] == 0  # the checksum found it before the decoder did


@pytest.mark.parametrize("body", [b"", b"\x0a\x02\x08", bytes.fromhex("ffffffffffffffffffff01")])
def test_garbage_is_refused(body):
    with pytest.raises((Refused, KeyError)):
        capture.flows_of(body)


def test_a_batch_that_cannot_be_read_is_counted(tmp_path):
    body = b"\x0a\x02\x08"
    head = struct.pack("<B3xIQ", capture.PACKETS, len(body), 1)
    bad = capture.RECORD_MAGIC + head + struct.pack("<I", zlib.crc32(body, zlib.crc32(head))) + body
    (tmp_path / "bad.oalcap").write_bytes(STEADY.read_bytes() + bad)
    assert capture.flow_rows(tmp_path / "bad.oalcap")[1]["refused"] == 1


def test_other_files_are_named(tmp_path):
    (tmp_path / "x").write_text("hello")
    with pytest.raises(TrainingError, match="no capture of ap-exporter"):
        capture.flow_rows(tmp_path / "x")
    with pytest.raises(TrainingError, match="not written by oal-sniffer"):
        sender.rows(tmp_path / "x")
    with pytest.raises(TrainingError, match="no such file"):
        sender.rows(tmp_path / "y")


def test_a_sender_file_that_was_cut_short_gives_what_is_whole(tmp_path):
    source = ROOT / "lab/captures/learning2.sender.jsonl.gz"
    whole = sender.rows(source)
    (tmp_path / "cut").write_bytes(source.read_bytes()[:200_000])
    cut = sender.rows(tmp_path / "cut")
    n = len(cut["ts_us"])
    assert 1000 < n < len(whole["ts_us"])
    assert all(np.array_equal(cut[name], whole[name][:n]) for name in cut)


def test_sender_rows_need_their_columns(tmp_path):
    with gzip.open(tmp_path / "f", "wt") as f:
        f.write(json.dumps({"columns": ["ts", "flow_id"]}) + "\n[1,2]\n")
    with pytest.raises(TrainingError, match="cwnd_bytes|congestion_control"):
        sender.rows(tmp_path / "f")
