"""One line for each thing that was asked: what it is, out of what the guests, the emulator and the bench say."""
import dataclasses
import datetime
import json
import pathlib


@dataclasses.dataclass
class Line:
    name: str
    asked: str  # in words, with its bound
    bound: float
    is_: float
    unit: str
    parts: dict[str, float]  # what it is made of, in the same unit
    command: str
    measured: str = dataclasses.field(default_factory=lambda: datetime.date.today().isoformat())

    @property
    def met(self) -> bool:
        return self.is_ <= self.bound

    def text(self) -> str:
        made = ", ".join(f"{name} {show(value)}" for name, value in self.parts.items())
        return f"{'met   ' if self.met else 'missed'} {self.asked}: {show(self.is_)} {self.unit}" + \
            (f" ({made})" if made else "")


def show(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def calls(seen: dict) -> Line:
    """Of sampler's guest."""
    found = seen["calls"]["auto"]
    parts = {f"{who}: {name}": n for who, names in found.items() for name, n in names.items() if n >= 1}
    return Line("calls", "system calls of the whole process at ten stations with the module, at most 40 a second", 40,
                sum(n for names in found.values() for n in names.values()), "a second", parts, "make -C lab sampler")


def ticks(seen: dict) -> Line:
    """Of router's guest."""
    before, after = seen["slow driver"]
    return Line("ticks", "ticks missed with a driver that takes 50 ms an answer, none", 0,
                after["ticks_missed"] - before["ticks_missed"], f"of {after['ticks'] - before['ticks']:,}", {},
                "make -C lab router")


def hundred(cells: list) -> Line:
    """A hundred stations that the module samples, of which ten have traffic, and those who send something."""
    found = {(c.active, c.packets): c for c in cells}
    quiet = found[10, 0]
    parts = {"user space": share(quiet.user), "kernel": share(quiet.kernel),
             **{f"{active} active, {packets:,} packets/s": c.percent for (active, packets), c in sorted(found.items())
                if c is not quiet}}
    return Line("hundred", "a hundred stations with the module, at most 3 % of a 24Kc at 560 MHz, kernel included", 3,
                quiet.percent, "% with ten of them active and no TCP packets", parts, "make -C lab bench-system",
                min(c.measured for c in cells))


def ten(cell) -> Line:
    return Line("ten", "ten active stations by nl80211 under the budget, at most 5 % of a 24Kc, kernel included", 5,
                cell.percent, f"% at {cell.packets:,} packets/s",
                {"user space": share(cell.user), "kernel": share(cell.kernel)}, "make -C lab bench-system",
                cell.measured)


def share(instructions_a_tick: float) -> float:
    from system import cost
    return 100 * instructions_a_tick * 1e6 / cost.TICK_US / cost.CPU_PER_S


def memory(figures: list[dict]) -> Line:
    """Of bench-rss. Its note has the kinds of memory."""
    figure, = [f for f in figures if f["name"] == "exporter_rss_agent_feed"]
    words = figure["note"].replace(",", " ").replace(";", " ").split()
    parts = {kind: int(words[words.index(kind) + 1]) / 1e6 for kind in ("anonymous", "file-backed", "shared")}
    return Line("memory", "resident with TLS and agent, at most 6 MB", 6, figure["value"] / 1e6, "MB", parts,
                "make -C ap-exporter bench-rss")


def read(path: pathlib.Path) -> dict[str, Line]:
    if not path.exists():
        return {}
    return {one["name"]: Line(**one) for one in json.loads(path.read_text())}


def save(path: pathlib.Path, lines: dict[str, Line]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([dataclasses.asdict(line) for line in lines.values()], indent=1) + "\n")
