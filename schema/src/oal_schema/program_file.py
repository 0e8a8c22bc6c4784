"""Feature programs as bytes: what a bundle carries and what the hash is over."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

MAGIC = b"OALF1"


def to_bytes(words: list[tuple[int, ...]], decision_interval_us: int) -> bytes:
    """`OALF1`, decision interval, number of features, then twelve words a feature; all big-endian signed 64-bit."""
    flat = [decision_interval_us, len(words)] + [w for row in words for w in row]
    return MAGIC + struct.pack(f">{len(flat)}q", *flat)


def from_bytes(data: bytes) -> tuple[list[tuple[int, ...]], int]:
    """Inverse of `to_bytes`; ValueError on anything else."""
    if data[:5] != MAGIC or (len(data) - 5) % 8 or len(data) < 21:
        raise ValueError("not a feature program: bad magic or length")
    flat = struct.unpack(f">{(len(data) - 5) // 8}q", data[5:])
    interval, n = flat[:2]
    if n < 0 or len(flat) != 2 + 12 * n:
        raise ValueError(f"feature program says {n} features and has {(len(flat) - 2) / 12:g}")
    return [tuple(flat[2 + 12 * i : 14 + 12 * i]) for i in range(n)], interval


def beginnings(words: list[tuple[int, ...]], decision_interval_us: int) -> Iterator[tuple[int, bytes]]:
    """(number of features, hash) of every program that this one begins with, itself first. Features are only added, at
    the end: a model or an item of an earlier release names one of these.
    """
    for n in range(len(words), 0, -1):
        yield n, program_hash(words[:n], decision_interval_us)


def program_hash(words: list[tuple[int, ...]], decision_interval_us: int) -> bytes:
    """SHA-256 of the program's bytes, 32 bytes."""
    return hashlib.sha256(to_bytes(words, decision_interval_us)).digest()
