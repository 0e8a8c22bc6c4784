"""Every cell that was asked for, played or failed, and its flows: as Python values and as Parquet."""
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

from . import play
from .methods import Method

FLOW = [
    "station", "ap", "kind", "goodput_mbps", "delay_mean_ms", "delay_p95_ms", "delay_p99_ms", "queueing_mean_ms",
    "queueing_p95_ms", "queueing_p99_ms", "rtt_mean_ms", "rtt_p95_ms", "rtt_p99_ms", "jitter_ms", "jitter_abs_ms",
    "packets", "lost", "loss_ratio", "retransmissions", "retransmission_ratio", "rtt_samples", "fct_ms", "unfinished"
]


class Results:
    """Figures by set, scenario, method and seed."""

    def __init__(self, cells: list[play.Cell], settings: play.Settings, failures: dict[play.Cell, str]):
        self.cells, self.failures = cells, failures
        self.found = {cell: found for cell in cells if (found := play.result(cell, settings))}
        self.scenarios = sorted({cell.scenario for cell in cells})
        self.methods = list(dict.fromkeys(cell.method for cell in cells))
        self.seeds = sorted({cell.seed for cell in cells})

    def values(self, scenario: str, which: Method, figure: str) -> dict[int, float]:
        """A figure of the cell by seed."""
        return {
            cell.seed: found["cell"][figure] for cell, found in self.found.items()
            if cell.scenario == scenario and cell.method == which and found["cell"][figure] is not None
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
                         | (found["cell"] | {"cpu_s": found["cost"]["cpu_s"]} if found else {}))
            flows += [head | {name: flow.get(name) for name in FLOW} for flow in (found["flows"] if found else [])]
        return cells, flows

    def write(self, folder: pathlib.Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        cells, flows = self.rows()
        names = list(dict.fromkeys(name for row in cells for name in row))
        pq.write_table(pa.Table.from_pylist([{name: row.get(name) for name in names} for row in cells]),
                       folder / "cells.parquet")
        pq.write_table(pa.Table.from_pylist(flows), folder / "results.parquet")
