"""A loopback network of the drill's own, on which it lets packets vanish."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000


def own() -> None:
    """This process and what it starts have a network namespace of their own, with loopback and nothing else. OSError
    without the right to (root).
    """
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"a network namespace: {os.strerror(number)}; this drill needs root")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


@contextmanager
def dropped(port: int) -> Iterator[None]:
    """No packet to or from this TCP port arrives: nothing is refused, and nobody hears that the other hung up. Only
    after own().
    """
    rules = [["INPUT", "-p", "tcp", way, str(port), "-j", "DROP"] for way in ("--dport", "--sport")]
    for rule in rules:
        _iptables("-I", rule)
    try:
        yield
    finally:
        for rule in rules:
            _iptables("-D", rule)


def packets_dropped() -> int:
    """By the rules that stand now."""
    listed = subprocess.run(["iptables", "-w", "-L", "INPUT", "-n", "-v", "-x"], check=True, capture_output=True,
                            text=True).stdout
    return sum(int(line.split()[0]) for line in listed.splitlines() if " DROP " in line and "policy" not in line)


def _iptables(action: str, rule: list[str]) -> None:
    subprocess.run(["iptables", "-w", action, *rule], check=True)
