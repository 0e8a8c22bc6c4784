"""Every cell that was asked for, played or failed, and its flows: as Python values and as Parquet."""
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

from . import metrics, play, sessions
from .methods import Method, method

FLOW = [
    "station", "ap", "kind", "goodput_mbps", "delay_mean_ms", "delay_p95_ms", "delay_p99_ms", "queueing_mean_ms",
    "queueing_p95_ms", "queueing_p99_ms", "rtt_mean_ms", "rtt_p95_ms", "rtt_p99_ms", "jitter_ms", "jitter_abs_ms",
    "packets", "lost", "loss_ratio", "retransmissions", "retransmission_ratio", "rtt_samples", "fct_ms", "unfinished",
    "cc", "direction", "ack_wait_mean_ms", "ack_wait_p95_ms", "ack_wait_p99_ms", "duplicate_acks", "ce_ratio",
    "ece_ratio", "ecn"
]
HEAD = ("set", "scenario", "method", "control", "queue", "act", "seed")
#: Lost packets with their causes, where methods look on (diagnosis.py).
LOSSES = "losses.parquet"
#: Sessions of senders, where a policy is judged by them (sessions.py).
SESSIONS = "sessions.parquet"
MADE_OF = ("exporter", "policy", "tree", "window")


# Jain's index of a figure (1: all alike) over flows, stations and access points: jain_FIGURE_OF
FAIR_FIGURES = {"throughput": "goodput_mbps", "delay": "delay_mean_ms", "jitter": "jitter_ms"}
FAIR_OF = ("flow", "station", "ap")


def fairness(flows: list[dict]) -> dict[str, float | None]:
    """Jain's indices of a cell's long downloads. Throughputs of a station or an access point are added up, delay and
    jitter are means over its flows. None where no flow has the figure.
    """
    long, out = [flow for flow in flows if flow["kind"] == "long" and flow.get("direction") != "up"], {}
    for name, figure in FAIR_FIGURES.items():
        for of in FAIR_OF:
            groups: dict = {}
            for i, flow in enumerate(long):
                if flow[figure] is not None:
                    groups.setdefault(i if of == "flow" else flow.get(of), []).append(flow[figure])
            values = [sum(g) if name == "throughput" else sum(g) / len(g) for g in groups.values()]
            out[f"jain_{name}_{of}"] = metrics.jain(values)
    return out


class Results:
    """Figures by set, scenario, method and seed.

    found: of each cell {"cell": figures, "flows": a row a flow, "cost": {"cpu_s"}, "made_of": play.made_of}.
    """

    def __init__(self, cells: list[play.Cell], found: dict[play.Cell, dict], failures: dict[play.Cell, str]):
        self.cells, self.found, self.failures = cells, found, failures
        for one in found.values():
            one["cell"] |= fairness(one["flows"]) | sessions.worths(one.get("sessions", []))
        self.scenarios = sorted({cell.scenario for cell in cells})
        self.methods = list(dict.fromkeys(cell.method for cell in cells))
        self.seeds = sorted({cell.seed for cell in cells})

    @classmethod
    def played(cls, cells: list[play.Cell], settings: play.Settings, failures: dict[play.Cell, str]) -> "Results":
        """Those of the cells that were played with these settings."""
        found = {cell: one | {"made_of": play.made_of(cell, settings)} for cell in cells
                 if (one := play.result(cell, settings))}
        return cls(cells, found, failures)

    @classmethod
    def read(cls, folder: pathlib.Path) -> "Results":
        """What `write` wrote."""
        cells, found, failures = [], {}, {}
        for row in pq.read_table(folder / "cells.parquet").to_pylist():
            cell = play.Cell(row["set"], row["scenario"], method(row["method"]), row["seed"])
            cells.append(cell)
            if row["failed"] is not None:
                failures[cell] = row["failed"]
                continue
            figures = {name: value for name, value in row.items() if name not in (*HEAD, *MADE_OF, "failed", "cpu_s")}
            found[cell] = {"cell": figures, "flows": [], "cost": {"cpu_s": row["cpu_s"]},
                           "made_of": {name: row.get(name) for name in MADE_OF}}
        for key, file in (("losses", folder / LOSSES), ("sessions", folder / SESSIONS)):
            for row in pq.read_table(file).to_pylist() if file.exists() else []:
                cell = play.Cell(row["set"], row["scenario"], method(row["method"]), row["seed"])
                found[cell].setdefault(key, []).append({k: v for k, v in row.items() if k not in HEAD})
        for row in pq.read_table(folder / "results.parquet").to_pylist():
            cell = play.Cell(row["set"], row["scenario"], method(row["method"]), row["seed"])
            found[cell]["flows"].append({name: row.get(name) for name in FLOW})
        return cls(cells, found, failures)

    def station_goodput(self, scenario: str, which: Method) -> dict[str, dict[int, float]]:
        """Mbit/s of a station's long flows, by station and seed; of its uploads by themselves, under "NAME up"."""
        rates: dict[str, dict[int, float]] = {}
        for cell, one in self.found.items():
            if cell.scenario != scenario or cell.method != which:
                continue
            for flow in one["flows"]:
                if flow["kind"] == "long":
                    up = " up" if flow.get("direction") == "up" else ""
                    of = rates.setdefault(flow["station"] + up, {})
                    of[cell.seed] = of.get(cell.seed, 0.0) + flow["goodput_mbps"]
        return rates

    def values(self, scenario: str, which: Method, figure: str) -> dict[int, float]:
        """A figure of the cell by seed."""
        return {
            cell.seed: value for cell, found in self.found.items()
            if cell.scenario == scenario and cell.method == which
            and (value := found["cell"].get(figure)) is not None
        }

    def rows(self) -> tuple[list[dict], list[dict]]:
        """(cells, flows), one row each."""
        cells, flows = [], []
        for cell in self.cells:
            head = {
                "set": cell.set, "scenario": cell.scenario, "method": cell.method.name, "control": cell.method.control,
                "queue": cell.method.queue, "act": cell.method.act or None, "seed": cell.seed
            }
            found = self.found.get(cell)
            if not found and cell not in self.failures:
                continue
            cells.append(head | {"failed": self.failures.get(cell) if not found else None}
                         | (found["cell"] | {"cpu_s": found["cost"]["cpu_s"]} | found["made_of"] if found else {}))
            flows += [head | {name: flow.get(name) for name in FLOW} for flow in (found["flows"] if found else [])]
        return cells, flows

    def of_cells(self, key: str) -> list[dict]:
        """What each cell has a list of, a row each, with the cell."""
        return [{"set": cell.set, "scenario": cell.scenario, "method": cell.method.name, "seed": cell.seed} | one
                for cell, found in self.found.items() for one in found.get(key, [])]

    def write(self, folder: pathlib.Path, with_sessions: bool = False) -> None:
        """As Parquet, for `read`."""
        folder.mkdir(parents=True, exist_ok=True)
        cells, flows = self.rows()
        names = list(dict.fromkeys(name for row in cells for name in row))
        pq.write_table(pa.Table.from_pylist([{name: row.get(name) for name in names} for row in cells]),
                       folder / "cells.parquet")
        pq.write_table(pa.Table.from_pylist(flows), folder / "results.parquet")
        for key, file in (("losses", LOSSES), *((("sessions", SESSIONS),) if with_sessions else ())):
            if of := self.of_cells(key):
                pq.write_table(pa.Table.from_pylist(of), folder / file, compression="zstd", compression_level=19)
