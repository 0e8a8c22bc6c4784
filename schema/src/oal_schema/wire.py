"""Protobuf wire primitives: varints, zigzag, fields. Bounds-checked; `Refused` on anything that does not parse."""

from __future__ import annotations

from collections.abc import Iterator

REASONS = (
    "oversized",
    "truncated",
    "malformed",
    "value_range",
    "unknown_revision",
    "key_mismatch",
    "time_range",
    "unsigned",
    "unknown_key",
    "forged",
    "revoked",
)


class Refused(ValueError):
    """A record that the contract refuses. `reason` is one of REASONS, `detail` says what exactly."""

    def __init__(self, reason: str, detail: str):
        assert reason in REASONS
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


def put_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def zigzag(value: int) -> int:
    return (value << 1) ^ (value >> 63)


def unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def get_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(value, next offset). At most ten bytes and 64 bits."""
    value = shift = 0
    while True:
        if at >= end:
            raise Refused("truncated", f"varint runs past offset {end}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise Refused("malformed", "varint over ten bytes")
    if value >> 64:
        raise Refused("malformed", "varint over 64 bits")
    return value, at


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (field, wire type, start, end) of each field; for wire type 0 the varint's bytes."""
    while at < end:
        key, at = get_varint(data, at, end)
        field, kind = key >> 3, key & 7
        if field == 0 or field >= 1 << 29:
            raise Refused("malformed", f"field number {field}")
        start = at
        if kind == 0:
            _, at = get_varint(data, at, end)
        elif kind == 1:
            at += 8
        elif kind == 2:
            size, start = get_varint(data, at, end)
            at = start + size
        elif kind == 5:
            at += 4
        else:
            raise Refused("malformed", f"wire type {kind}")
        if at > end:
            raise Refused("truncated", f"field {field} runs past offset {end}")
        yield field, kind, start, at


def varints(data: bytes, start: int, end: int) -> Iterator[int]:
    """The varints of a packed field."""
    while start < end:
        value, start = get_varint(data, start, end)
        yield value


def put_bytes(out: bytearray, field: int, payload: bytes) -> None:
    put_varint(out, field << 3 | 2)
    put_varint(out, len(payload))
    out += payload


def put_uint(out: bytearray, field: int, value: int) -> None:
    """A varint field; left out when 0, as proto3 does."""
    if value:
        put_varint(out, field << 3)
        put_varint(out, value)


def put_fixed64(out: bytearray, field: int, value: int) -> None:
    if value:
        put_varint(out, field << 3 | 1)
        out += value.to_bytes(8, "little")
