"""Golden records that must be refused, one or more for every reason (golden/README.md)."""

from __future__ import annotations

from . import wire
from .codec import Batch, contract, encode
from .golden_batches import NOW_US, T0, batch_header, empty_row


def refused() -> list[tuple[int, bytes, str]]:
    """Records that must be refused, with the reason."""
    table = contract().table("station")
    row = empty_row(table)

    def ok(**header) -> bytes:
        return encode(Batch(0, batch_header(0, T0, **header), {"station": [row, row | {"tick": 1, "tx_bytes": 9}]}))

    def with_table(field_bytes: bytes) -> bytes:
        out = bytearray(encode(Batch(0, batch_header(0, T0))))
        wire.put_bytes(out, table.field, field_bytes)
        return bytes(out)

    good = ok()

    def field(number: int, payload: bytes) -> bytes:
        out = bytearray()
        wire.put_bytes(out, number, payload)
        return bytes(out)

    tick, signal, mac = table.column("tick").field, table.column("signal_dbm").field, table.column("mac").field
    cases = [
        (b"\x00" * (contract().settings["max_batch_bytes"] + 1), "oversized"),
        (good[:-1], "truncated"),
        (good[: len(good) // 2], "truncated"),
        (b"", "malformed"),
        (b"\x0b", "malformed"),  # wire type 3
        (b"\x0a\x00", "malformed"),  # empty header
        (good + good, "malformed"),  # two headers
        (b"\xff" * 11, "malformed"),  # varint over ten bytes
        (ok(tick_us=0), "malformed"),
        (ok(ticks=0), "malformed"),
        (ok(ap_id=""), "malformed"),
        (ok(missed_start=[1], missed_ticks=[]), "malformed"),
        (ok(schema_revision=0), "unknown_revision"),
        (ok(schema_revision=99), "unknown_revision"),
        (ok(ap_id="ap-2"), "key_mismatch"),
        (ok(t0_us=NOW_US + 61_000_000), "time_range"),
        (ok(t0_us=NOW_US - 604_801_000_000), "time_range"),
        (with_table(field(1, b"\x02") + field(tick, b"\x02")), "malformed"),  # one value for two rows
        (with_table(field(1, b"\x01") + field(tick, b"\x02\x02")), "malformed"),  # two values for one row
        (with_table(field(1, b"\x02") + field(tick, b"\x00")), "malformed"),  # zero without count
        (with_table(field(1, b"\x02") + field(tick, b"\x00\x7e")), "malformed"),  # too many zeros
        (with_table(field(1, b"\x02") + field(tick, b"\x00\x03")), "malformed"),  # negative count
        (with_table(field(1, b"\x00")), "malformed"),  # empty run
        (with_table(field(1, b"\x01" * 600)), "malformed"),  # more runs than allowed
        (with_table(field(1, b"\xff\xff\x07")), "malformed"),  # more rows than allowed
        (with_table(field(1, b"\x01") + field(2, b"\x80\x80\x80\x80\x08")), "malformed"),  # absent bit of no column
        (with_table(field(1, b"\x01") + field(2, b"\x01\x01")), "malformed"),  # absent for two runs
        (with_table(field(1, b"\x01") + field(4, b"\x10")), "malformed"),  # device outside the dictionary
        (with_table(field(1, b"\x01") + field(1, b"\x01")), "malformed"),  # field repeated
        (with_table(field(1, b"\x01") + bytes([tick << 3, 1])), "malformed"),  # wrong wire type
        (with_table(field(1, b"\x01") + field(signal, b"\x80\x02")), "value_range"),  # signal 128
        (with_table(field(1, b"\x01") + field(mac, b"\x01")), "value_range"),  # MAC -1
        (with_table(field(1, b"\x01") + field(tick, b"\x01")), "value_range"),  # tick -1
        (with_table(field(1, b"\x01") + field(tick, b"\xfe\xff\xff\xff\x1f")), "value_range"),  # tick past 2^40 us
    ]
    return [(0, data, reason) for data, reason in cases]
