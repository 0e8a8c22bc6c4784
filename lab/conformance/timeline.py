"""What the rewrite was told, as intervals: which windows a client's ACK of a given moment may carry when it leaves the
access point.
"""
from dataclasses import dataclass, field

FLOOR_MSS, MAX_SCALE = 4, 14
FOREVER_US = 1 << 62


@dataclass
class Rules:
    """How far the moments of a backend may be off. `settle_us`: from an answered command to its effect; `late_us`: from
    a deadline to plain windows;
    `early_us`: before a deadline windows may be plain already, by the grain of the backend's clock."""
    settle_us: int
    late_us: int
    early_us: int = 0


def raw_window(limit_bytes: int, scale: int, mss: int) -> int:
    """The window field for a limit: never below four segments, never more than the limit allows otherwise."""
    unit = 1 << scale
    floor = -(-FLOOR_MSS * mss // unit)
    return min(0xffff, max(1, floor, limit_bytes >> scale))


@dataclass
class Clamp:
    """One `set` that was carried out, until something took its place. All in µs of the AP's clock."""
    begin: int  # the command was given
    sure: int  # it must have had its effect
    limit: int
    expire_first: int  # the earliest moment at which its time to live may be over
    expire_last: int
    superseded_begin: int = FOREVER_US  # the next command for this flow was given
    superseded_sure: int = FOREVER_US
    released: bool = False  # … and that was a release


@dataclass
class Timeline:
    """Of one flow."""
    rules: Rules
    clamps: list[Clamp] = field(default_factory=list)
    # spans in which a clamp may be away: the data path itself was
    open_us: list[tuple[int, int]] = field(default_factory=list)
    free_us: list[tuple[int, int]] = field(default_factory=list)  # spans in which the agent clamps as it likes

    def add(self, event: dict) -> None:
        begin, end = event["t_us"], event["end_us"]
        if event["what"] == "gap":
            self.open_us.append((begin, end))
            return
        if event["what"] == "free":
            self.free_us.append((begin, end))
            return
        if not event["ok"]:
            return
        if self.clamps:
            last = self.clamps[-1]
            if last.superseded_begin == FOREVER_US:
                last.superseded_begin, last.superseded_sure = begin, end + self.rules.settle_us
                last.released = event["what"] == "release"
        if event["what"] == "set":
            ttl_us = event["ttl_ms"] * 1000
            self.clamps.append(
                Clamp(begin, end + self.rules.settle_us, event["bytes"], begin + ttl_us - self.rules.early_us,
                      end + ttl_us + self.rules.late_us))

    def allowed(self, t_us: int) -> tuple[set[int], bool]:
        """Limits that may hold at this moment, and whether the client's own window may pass."""
        limits, own = set(), True
        for c in self.clamps:
            if c.begin <= t_us < min(c.expire_last, c.superseded_sure):
                limits.add(c.limit)
            if c.sure <= t_us < min(c.expire_first, c.superseded_begin if c.released else c.superseded_sure):
                own = False
        return limits, own or any(a <= t_us < b for a, b in self.open_us)

    def free(self, t_us: int, within_us: int) -> bool:
        """The agent itself decides, or did so that long ago."""
        return any(a <= t_us <= b + within_us for a, b in self.free_us)

    def steady(self, at_least_us: int) -> list[tuple[int, int, int]]:
        """(from, to, limit) of spans that are that long, in which one limit surely holds without a break."""
        spans: list[list[int]] = []
        for c in self.clamps:
            end = min(c.expire_first, c.superseded_begin)
            if spans and spans[-1][2] == c.limit and c.begin <= spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], end)
            elif end > c.sure:
                spans.append([c.sure, end, c.limit])
        return [(a, b, limit) for a, b, limit in spans
                if b - a >= at_least_us and not any(x < b and y > a for x, y in self.open_us)]
