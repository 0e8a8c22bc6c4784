"""Serials of bundles: one rule for whoever signs, and for whoever reads what was signed."""

from __future__ import annotations

from collections.abc import Iterable

from .settings import settings


def ahead(serial: int, now_us: int) -> bool:
    """Is a serial so far ahead of this clock that its bundle is no release? It would block its slot until then."""
    return serial > now_us + settings()["max_serial_ahead_us"]


def following(now_us: int, known: Iterable[int]) -> int:
    """Serial of the next bundle: this clock, or one more than the greatest that is known, if the clock went back.

    `known`: of every release that an AP may hold, of all slots, online ones too. Those that are `ahead` do not count:
    nobody gives them to an AP.
    """
    return max([now_us, *(serial + 1 for serial in known if not ahead(serial, now_us))])
