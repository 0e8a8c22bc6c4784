"""Files of golden records: one after the other, each with its topic and length (golden/README.md)."""

from __future__ import annotations


def container(records: list[tuple[int, bytes]]) -> bytes:
    """Records as golden/README.md says."""
    return b"".join(bytes([topic]) + len(data).to_bytes(4, "little") + data for topic, data in records)


def read_container(data: bytes) -> list[tuple[int, bytes]]:
    """Inverse of `container`."""
    out, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at + 1 : at + 5], "little")
        out.append((data[at], data[at + 5 : at + 5 + size]))
        at += 5 + size
    return out
