"""The loop: sample the connections at a steady rate, compare clocks once a second, hand rows on four times a second."""
from __future__ import annotations

import ipaddress
import threading
import time
from dataclasses import dataclass, field

from .clock import NO_OFFSET, Clock
from .diag import Connection, InetDiag
from .rows import Changes, row

FLUSH_S, ASK_S, QUICK_ASK_S, QUICK_ASKS = 0.25, 1.0, 0.1, 8


@dataclass(frozen=True)
class Filter:
    """Which connections count: not the loopback's, nor those that never sent anything; then by local port and peer, if
    any are given.
    """

    ports: frozenset[int] = frozenset()
    peers: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    def takes(self, c: Connection) -> bool:
        if self.ports and c.local_port not in self.ports:
            return False
        if c.info["bytes_acked"] <= 1 and not c.info["unacked_pkts"]:  # the 1 is the SYN: a receiver
            return False
        peer = ipaddress.ip_address(c.remote)
        return any(peer in net for net in self.peers
                   if net.version == peer.version) if self.peers else not peer.is_loopback


@dataclass
class Sniffer:
    """`run` until stop is set. Counts what it did and what it could not do."""

    host: str
    diag: InetDiag
    sinks: list
    rate_hz: float = 50.0
    wanted: Filter = field(default_factory=Filter)
    clock: Clock | None = None
    samples: int = 0
    ticks_missed: int = 0
    rows: int = 0

    def __post_init__(self):
        self.changes, self.pending = Changes(), []

    def sample(self) -> None:
        """One dump; its time is the middle between question and answer."""
        before = time.time_ns()
        found = self.diag.connections()
        after = time.time_ns()
        offset = self.clock.offset(after) if self.clock else NO_OFFSET
        self.pending += self.changes.of([(c.cookie, row(c, (before + after) // 2000, self.host, offset)) for c in found
                                         if self.wanted.takes(c)])
        self.samples += 1

    def flush(self) -> None:
        if self.pending:
            self.rows += len(self.pending)
            for sink in self.sinks:
                sink.write(self.pending)
            self.pending = []

    def run(self, stop: threading.Event) -> None:
        start = time.monotonic()
        ticks, asks, next_flush, next_ask = 0, 0, start + FLUSH_S, start
        while not stop.wait(max(0.0, start + ticks / self.rate_hz - time.monotonic())):
            now = time.monotonic()
            due = int((now - start) * self.rate_hz) + 1
            self.ticks_missed += max(0, due - ticks - 1)
            ticks = max(ticks + 1, due)
            if self.clock:
                self.clock.poll()
                if now >= next_ask:
                    self.clock.ask()
                    asks += 1
                    next_ask = now + (QUICK_ASK_S if asks < QUICK_ASKS else ASK_S)
            self.sample()
            if now >= next_flush:
                self.flush()
                next_flush = now + FLUSH_S
        self.flush()
        for sink in self.sinks:
            sink.close()

    def status(self) -> dict:
        """What a person or a test wants to know at the end."""
        offset = self.clock.offset(time.time_ns()) if self.clock else NO_OFFSET
        return {
            "host": self.host, "samples": self.samples, "ticks_missed": self.ticks_missed, "rows": self.rows,
            "rows_let_go": sum(sink.let_go for sink in self.sinks), "malformed": self.diag.malformed,
            "clock_answers": self.clock.answers if self.clock else 0,
            "clock_refused": self.clock.refused if self.clock else 0, "clock_offset_us": offset.offset_us,
            "clock_offset_error_us": offset.error_us
        }
