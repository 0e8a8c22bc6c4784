"""What a run of rrul_be or rtt_fair has seen, in flent's own data format (version 4), so that flent reads, sums up and
plots it: `flent -i FILE -f summary`.
"""
import datetime
import gzip
import json
import pathlib

import numpy as np

VERSION = 4
#: How far apart two values may be with something drawn between them, in steps (flent: 5).
REACH_STEPS = 5
#: Series that flent makes of others: (name, of those that begin so, by).
SUMS = (("TCP upload avg", "TCP upload", "mean"), ("TCP upload sum", "TCP upload", "sum"),
        ("TCP download avg", "TCP download", "mean"), ("TCP download sum", "TCP download", "sum"),
        ("Ping (ms) avg", "Ping (ms)", "mean"))


def iso(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def tcp_values(rows: list[list], begin_s: float, end_s: float) -> list[dict]:
    """Raw values of a TCP series, of samples within its time: Mbit/s since the sample before, and the sender's smoothed
    round trip in ms under the name that flent gives it.
    """
    values = []
    for before, row in zip(rows, rows[1:]):
        if begin_s <= before[0] and row[0] <= end_s:
            value = {"t": row[0], "dur": row[0] - before[0], "val": (row[1] - before[1]) * 8e-6 / (row[0] - before[0])}
            values.append(value | ({"tcp_rtt": row[2] / 1e3} if row[2] else {}))
    return values


def ping_values(rows: list[list]) -> list[dict]:
    """Raw values of a ping series in the order in which they were sent; what was never answered is not among them."""
    return [{"seq": n, "t": sent_s, "val": ms} for n, (sent_s, ms) in enumerate(rows) if ms is not None]


def drawn(values: list[dict], t0_s: float, steps: np.ndarray, step_s: float) -> list[float | None]:
    """A series on the steps that all have in common: between two values a line, None where there are none near."""
    at = np.array([v["t"] - t0_s for v in values])
    if len(at) < 2:
        return [None] * len(steps)
    after = np.searchsorted(at, steps)
    inside = (after > 0) & (after < len(at))
    gap = at[np.minimum(after, len(at) - 1)] - at[np.maximum(after - 1, 0)]
    line = np.interp(steps, at, [v["val"] for v in values])
    return [float(y) if ok else None for y, ok in zip(line, inside & (gap <= REACH_STEPS * step_s))]


def together(rows: list[list[float | None]], how: str) -> list[float | None]:
    known = [[v for v in at if v is not None] for at in zip(*rows)]
    return [(sum(at) / (len(at) if how == "mean" else 1)) if at else None for at in known]


def content(plan: dict, seen: dict, title: str) -> dict:
    """The whole of a data file. `plan`: of the guest (its `test`: name, series by flow and by ping, hosts, times)."""
    test, t0_s = plan["test"], seen["t0_s"]
    begin_s, end_s = t0_s + test["delay_s"], t0_s + test["delay_s"] + test["length_s"]
    raw = {name: tcp_values(rows, begin_s - test["step_s"], end_s + test["step_s"])
           for name, rows in zip(test["flow_series"], seen["flows"], strict=True)}
    raw |= {name: ping_values(rows) for name, rows in zip(test["ping_series"], seen["pings"], strict=True)}
    steps = np.arange(0, plan["duration_s"] + test["step_s"] / 2, test["step_s"])
    results = {name: drawn(values, t0_s, steps, test["step_s"]) for name, values in raw.items()}
    results |= {name: together([results[n] for n in raw if n.startswith(of)], how) for name, of, how in SUMS}
    units = {name: "ms" if name.startswith("Ping") else "Mbits/s" for name in results}
    metadata = {
        "NAME": test["name"], "TITLE": title, "TIME": iso(t0_s), "T0": iso(t0_s), "HOST": test["hosts"][0],
        "HOSTS": test["hosts"], "LOCAL_HOST": test["local_host"], "LENGTH": test["length_s"],
        "TOTAL_LENGTH": plan["duration_s"], "STEP_SIZE": test["step_s"], "TEST_PARAMETERS": test["parameters"],
        "IP_VERSION": 4, "FLENT_VERSION": None, "NOTE": "written by lab/responsiveness of OAL, not by flent",
        "BATCH_NAME": None, "BATCH_TIME": None, "BATCH_TITLE": None, "BATCH_UUID": None,
        "DATA_FILENAME": f"{test['name']}.{title}.flent.gz",
        "SERIES_META": {name: {"UNITS": unit} for name, unit in units.items()}
    }
    return {"version": VERSION, "metadata": metadata, "x_values": [round(float(x), 3) for x in steps],
            "results": results, "raw_values": raw}


def write(path: pathlib.Path, data: dict) -> None:
    """The same bytes for the same data."""
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write(json.dumps(data, sort_keys=True).encode())


def read(path: pathlib.Path) -> dict:
    with gzip.open(path, "rt") as file:
        return json.load(file)
