"""What an access point's agent costs, kernel included: instructions per tick in user space and in the kernel.

One boot for each number of stations and each way to sample. In it, for each packet rate: traffic alone for a window,
then the same traffic with the agent. Their difference is the agent's, wherever it falls: its threads, its system calls,
the packet tap in softirq, timers, wake-ups, the way out of idle.
"""
import dataclasses
import datetime
import json
import re

from . import machine

TICK_US = 4000
WINDOW_S = 5
CONFIG = "/etc/config/ap-exporter"
STATIONS = (1, 10, 20, 50, 100)
#: Besides those, each of which has traffic: (stations, those with traffic).
MOSTLY_IDLE = (100, 10)
MOST_STATIONS = 64  # that the exporter follows unless it is told otherwise
PACKETS = (0, 1500, 10000)
#: What a 24Kc at 560 MHz executes in a second, as the plan of this project assumes it: 0.625 instructions a cycle.
CPU_PER_S = 350_000_000


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to sample on a processor of some speed: an instruction takes 2^shift ns."""
    name: str
    percent: int  # of the processor, that sampling may take
    shift: int
    settle_s: int  # until its rates are what they will be
    module: bool = False  # the kernel samples the stations


#: The budget as shipped, 5 % of CPU_PER_S: 7 % of the 250 M instructions a second that are emulated. The busiest
#: traffic would fill that processor by itself, so there it is one of 500 M a second; 4 % of it are 5.7 % of CPU_PER_S.
SHIPPED, SHIPPED_BUSY = Way("budget", 7, 2, 25), Way("budget", 4, 1, 25)
UNLIMITED = Way("unlimited", 100, 0, 4)
#: 250 Hz whatever it costs, and the budget as above.
MODULE = Way("module", 100, 0, 4, True)
MODULE_SHIPPED, MODULE_SHIPPED_BUSY = Way("module-budget", 7, 2, 25, True), Way("module-budget", 4, 1, 25, True)
UNLIMITED_MOST = 50  # active stations: a hundred would take more than the fastest processor that is emulated has
BUSY = 5000  # packets a second


@dataclasses.dataclass
class Cell:
    machine: str
    way: str
    stations: int
    active: int  # of them, with traffic
    packets: int
    user: float  # a tick
    kernel: float
    missed: int  # ticks, in the window
    samplers: list[dict]  # as `ap-exporter status` has them at its end
    tap: str  # how packets are read
    measured: str  # date

    @property
    def kind(self) -> tuple:
        """What was measured: one cell of each."""
        return self.machine, self.way, self.stations, self.active, self.packets

    @property
    def total(self) -> float:
        return self.user + self.kernel

    @property
    def percent(self) -> float:
        """Of a 24Kc at 560 MHz."""
        return 100 * self.total * 1e6 / TICK_US / CPU_PER_S


def configuration(percent: int, stations: int = MOST_STATIONS) -> str:
    """As the package ships it, but that batches go to a file that keeps nothing, and the budget; for as many stations.
    """
    text = (machine.ROOT / "ap-exporter/files/ap-exporter.config").read_text()
    options = f"\n\toption sampling_cpu_percent '{percent}'"
    if stations > MOST_STATIONS:
        options += f"\n\toption max_stations '{stations}'"
    text = text.replace("option user 'nobody'", f"option user 'nobody'{options}")
    head, capture = text.split("config file 'capture'")
    changed = {
        "enabled '0'": "enabled '1'", "path '/tmp/ap-exporter.cap'": "path '/dev/null'", "max_mb '2'": "max_mb '0'"
    }
    for old, new in changed.items():
        assert capture.count(old) == 1, old
        capture = capture.replace(old, new)
    return head + "config file 'capture'" + capture


def plan(way: Way, stations: int, active: int, packets: tuple[int, ...]) -> str:
    lines = [f"access_point {stations}"] + ["module"] * way.module
    for rate in packets:
        lines += [f"traffic {rate} {active}", "sleep 2", f"window without-{rate} {WINDOW_S}", f"agent {CONFIG}",
                  f"sleep {way.settle_s}", f"agent_says {CONFIG}", f"window with-{rate} {WINDOW_S} $agent",
                  f"agent_says {CONFIG}", "agent_ends"]
    return "\n".join(lines) + "\n"


def measure(on: machine.Machine, way: Way, stations: int, active: int, packets: tuple[int, ...]) -> list[Cell]:
    """Cells of one boot."""
    played = machine.play(on, plan(way, stations, active, packets), way.shift,
                          {CONFIG: configuration(way.percent, stations)})
    counts, said = played.windows(), [json.loads(line) for line in played.lines("status")]
    assert len(counts) == len(said) == 2 * len(packets), (counts, said)
    ticks, cells = WINDOW_S * 1_000_000 / TICK_US, []
    for i, rate in enumerate(packets):
        (without, having), (before, after) = counts[2 * i:2 * i + 2], said[2 * i:2 * i + 2]
        cell = Cell(on.name, way.name, stations, active, rate,
                    *((b - a) / ticks for a, b in zip(without, having, strict=True)),
                    after["ticks_missed"] - before["ticks_missed"], after["samplers"], after["taps"][0]["tap"],
                    datetime.date.today().isoformat())
        check(cell, way, before, after)
        cells.append(cell)
    return cells


def check(cell: Cell, way: Way, before: dict, after: dict) -> None:
    """That what was measured is what it is called."""
    seconds = (after["uptime_us"] - before["uptime_us"]) / 1e6
    seen = (after["packets"] - before["packets"]) / seconds
    assert abs(seen - cell.packets) <= 0.05 * cell.packets, (seen, after)
    radio, = after["stations"]
    assert radio["source"] == ("module" if way.module else "nl80211"), radio
    if way.module:
        assert after["table_rows"]["station"] > before["table_rows"]["station"], after
        assert radio["records_lost"] == 0, radio
    if way is MODULE:
        read = radio["records"] - before["stations"][0]["records"]
        assert read >= 0.95 * cell.active * (after["ticks"] - before["ticks"]), "each at each tick"
    if way.percent == 100:
        assert all(s["pace"] == 0 for s in cell.samplers), after


def proof(on: machine.Machine, shift: int) -> dict:
    """Counts beside what is known of them (guest/measure.c): a loop of so many instructions; and, as nothing rests in
    between, the guest's clock, which is made of instructions."""
    played = machine.play(on, "air known\n", shift, {})
    known = [dict(re.findall(r"(\w+)=(\d+)", line)) for line in played.lines("known")]
    (loop, calls, idle), (in_loop, in_calls, in_idle) = known, played.windows()
    return {
        "loop_user": in_loop[0], "loop_user_known": int(loop["user"]),
        "calls": sum(in_calls), "calls_by_the_clock": int(calls["elapsed_ns"]) >> shift,
        "calls_user": in_calls[0], "calls_kernel": in_calls[1], "idle": sum(in_idle),
        "idle_by_the_clock": int(idle["elapsed_ns"]) >> shift
    }
