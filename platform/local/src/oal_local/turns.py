"""What control does to a live access point: without and with it in turns, side by side.

Nobody can see what control does from a run that always has it. So the live demo turns it off and on by the kill switch
of its access point, off first, each for one period of the scenario; what was measured in each turn comes from
ClickHouse, and each turn without control is compared with the one after it.
"""
import threading
import time
from http.client import HTTPException

from oal_local import control
from oal_local.errors import PlatformError

#: After a switch: until the access point has heard, clamps have ended and the queue stands as it will.
SETTLE_S = 4
RETRY_S = 0.5
LAST_TRIES = 20  # to turn control on again at the end: it outlives the demo
#: What is shown: figure, unit, digits.
FIGURES = (("throughput", "Mbit/s", 1), ("delay", "ms", 0), ("delay_p95", "ms", 0), ("loss", "%", 2))
NAMES = {"throughput": "throughput", "delay": "mean delay", "delay_p95": "p95 delay", "loss": "congestion loss"}


class Turns:
    """Turns control of one access point off and on, from `start` to `stop`, on a thread of its own."""

    def __init__(self, platform, ap_id: str, turn_s: float, within_s: float | None = None):
        """`within_s`: so long lasts the whole run; control stays on after the last whole pair of turns."""
        self._platform, self._ap_id, self._turn_s = platform, ap_id, turn_s
        self._turns = 2 * int(within_s // (2 * turn_s)) if within_s else None
        self._end = threading.Event()
        self._off = False  # whether the switch may be set; the push service refuses to lift one that is not
        self._thread = threading.Thread(target=self._run, daemon=True)
        #: (whether control was on, beginning, end) of each whole turn, realtime µs
        self.done: list[tuple[bool, int, int]] = []

    def start(self) -> "Turns":
        self._thread.start()
        return self

    def stop(self) -> None:
        """Control is on afterwards."""
        self._end.set()
        self._thread.join()
        problem = None
        for _ in range(LAST_TRIES):
            if not self._off:
                return
            try:
                self._switch(True)
            except (PlatformError, OSError, ValueError, HTTPException) as error:
                problem = error
                time.sleep(RETRY_S)
        if self._off:
            self._platform.log(f"the kill switch of {self._ap_id} could not be lifted: `ctl unkill` ({problem})")

    def _switch(self, on: bool) -> None:
        turn = control.unkill if on else control.kill
        self._off = True
        turn(self._platform, f"ap/{self._ap_id}", "the demo compares without and with control", "demo")
        self._off = not on

    def _run(self) -> None:
        on = False
        while not self._end.is_set() and (self._turns is None or len(self.done) < self._turns):
            try:
                self._switch(on)
            except (PlatformError, OSError, ValueError, HTTPException):
                self._end.wait(RETRY_S)
                continue
            begun = time.time_ns() // 1000
            if self._end.wait(self._turn_s):
                return
            self.done.append((on, begun, time.time_ns() // 1000))
            on = not on

    def pairs(self) -> list[tuple[dict, dict]]:
        """(without, with) of each two turns of which both have figures."""
        turns = [(on, measured(self._platform, self._ap_id, begun + SETTLE_S * 1_000_000, end))
                 for on, begun, end in list(self.done)]
        return [(before, after) for (off, before), (on, after) in zip(turns, turns[1:])
                if not off and on and before and after]


def measured(platform, ap_id: str, begun_us: int, end_us: int) -> dict | None:
    """The figures of `FIGURES` between two moments; None where there were no flows."""
    when = (f"ap_id = '{ap_id}' AND ts >= fromUnixTimestamp64Micro({begun_us})"
            f" AND ts < fromUnixTimestamp64Micro({end_us})")
    # Windows of 1 s start every 100 ms; those that start on a full second do not overlap.
    label = platform.clickhouse.rows(
        "SELECT sum(offered_bytes - lost_bytes) * 8 / 1e6 / count() AS throughput, sum(congestion_lost_pkts) AS lost,"
        f" sum(offered_pkts) AS offered, count() AS windows FROM oal.label WHERE {when}"
        " AND toUnixTimestamp64Micro(ts) % 1000000 = 0")[0]
    delay = platform.clickhouse.rows(
        "SELECT count() AS n, avg(rtt_down_us) / 1e3 AS mean, quantile(0.95)(rtt_down_us) / 1e3 AS p95 FROM oal.flow"
        f" WHERE {when} AND direction = 0 AND rtt_down_us > 0")[0]
    if not label["windows"] or not label["offered"] or not delay["n"]:
        return None
    return {"throughput": label["throughput"], "loss": 100 * label["lost"] / label["offered"],
            "delay": delay["mean"], "delay_p95": delay["p95"]}


def table(pairs: list[tuple[dict, dict]]) -> dict[str, dict]:
    """Figure → means without and with control, and the smallest and largest change (percent; of loss: points)."""
    found = {}
    for name, *_ in FIGURES if pairs else ():
        changes = [after[name] - before[name] if name == "loss" else 100 * (after[name] / before[name] - 1)
                   for before, after in pairs]
        off, on = (sum(turn[name] for turn in side) / len(pairs) for side in zip(*pairs))
        found[name] = {"off": off, "on": on, "least": min(changes), "most": max(changes), "pairs": len(pairs)}
    return found


#: What the loop's figures of the model mean here: items under control are not complete, so they are judged nowhere.
OF_THE_MODEL = (
    "    the model's figures above are of the turns without control: a loss that control prevented is judged nowhere;\n"
    "    the queue stands there and loses next to nothing, so that persistence is right by itself"
)


def lines(rows: dict[str, dict], turn_s: float) -> str:
    """The comparison, for the summary."""
    if not rows:
        return f"  without and with control: turns of {turn_s:.0f} s each, the first two are not over yet"
    pairs = next(iter(rows.values()))["pairs"]
    text = [f"  in turns of {turn_s:.0f} s:      without     with control    (change, smallest to largest of {pairs})"]
    for name, unit, digits in FIGURES:
        r = rows[name]
        text.append(f"    {NAMES[name]:17}{r['off']:10.{digits}f} {r['on']:10.{digits}f} {unit:7}"
                    f" {r['least']:+.1f} … {r['most']:+.1f} {'points' if name == 'loss' else '%'}")
    return "\n".join([*text, OF_THE_MODEL])
