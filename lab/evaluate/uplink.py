"""What stations that upload get and wait for, by queue of the access point: the table of the set `uplink`.

    python -m evaluate.uplink FOLDER     prints it of results that `lab/evaluate/run --set uplink --report FOLDER` kept
"""
import pathlib
import sys

from . import table, verdict
from .results import Results

#: Figure of a cell → (heading, digits, factor).
COLUMNS = {
    "up_mbps": ("uploads, Mbit/s", 2, 1), "up_jain_goodput": ("Jain", 3, 1), "up_rtt_p95_ms": ("RTT p95, ms", 0, 1),
    "up_ack_wait_p95_ms": ("wait of ACKs p95, ms", 0, 1), "up_duplicate_ack_ratio": ("duplicate ACKs, %", 2, 100),
    "throughput_mbps": ("downloads, Mbit/s", 2, 1), "fct_p95_ms": ("100 kB p95, ms", 0, 1)
}


def rows(r: Results) -> list[list[str]]:
    """Heading, then a row a scenario and method: mean over seeds, ± half of the 95 % interval where there are three."""
    out = [["scenario", "senders, queue", *(heading for heading, _, _ in COLUMNS.values())]]
    for scenario in r.scenarios:
        downloads = "down" in scenario
        for which in r.methods:
            found = [verdict.mean(r, scenario, which, figure) for figure in COLUMNS]
            if found[0] is None:
                continue
            out.append([scenario, which.name, *(
                table.figure(value, digits, factor) if downloads or name.startswith("up_") else ""
                for value, (name, (_, digits, factor)) in zip(found, COLUMNS.items()))])
    return out


def write(r: Results, folder: pathlib.Path) -> pathlib.Path:
    """Parquet of the cells, and the table; its path."""
    r.write(folder)
    (folder / "table.md").write_text(table.markdown(rows(r)))
    return folder / "table.md"


if __name__ == "__main__":
    print(table.markdown(rows(Results.read(pathlib.Path(sys.argv[1])))))
