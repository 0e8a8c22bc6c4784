"""The paths of policies/cc-select/grid.yaml, and the order in which they are played."""
from __future__ import annotations

import hashlib
import itertools
import pathlib

import yaml

GRID = pathlib.Path(__file__).resolve().parents[2] / "policies/cc-select/grid.yaml"
PACKET_BYTES = 1514
FQ_CODEL_QUEUE_BYTES = 100_000_000  # of the tbf above it: FQ-CoDel's own limit is the one that counts
CODEL_TARGET_US = 5000
CODEL_TARGET_PKTS = 1.5  # below this the target is raised, as sqm-scripts and CAKE do: a packet takes 12 ms at 1 Mbit/s


def load() -> dict:
    return yaml.safe_load(GRID.read_text(encoding="utf-8"))


def left_out(grid: dict, rate: float, loss: int, delay: int, jitter: int) -> bool:
    """Of the sparse rate each pair of delay and jitter is played with one loss; numbers are places in the lists."""
    sparse = grid["sparse"]
    return rate == sparse["rate_mbps"] and (loss + delay + 2 * jitter) % sparse["of"] != 0


def queue(grid: dict, kind: str, rate_mbps: float, delay_ms: float) -> dict:
    packet_us = PACKET_BYTES * 8 / rate_mbps
    product = round(rate_mbps * 1e6 / 8 * delay_ms / 1e3)
    return {
        "queue": kind, "target_us": round(max(CODEL_TARGET_US, CODEL_TARGET_PKTS * packet_us)),
        "queue_bytes": FQ_CODEL_QUEUE_BYTES if kind == "fq_codel" else max(product,
                                                                          grid["least_queue_pkts"] * PACKET_BYTES)
    }


def paths(grid: dict) -> list[dict]:
    """Each path with a name; `condition` is the same for both queues, which are never on both sides of a split."""
    out = []
    axes = (grid["rates_mbps"], enumerate(grid["losses"]), enumerate(grid["delays_ms"]),
            enumerate(grid["jitter_ratios"]), grid["queues"])
    for rate, (l, loss), (d, delay), (j, jitter), kind in itertools.product(*map(list, axes)):
        if left_out(grid, rate, l, d, j):
            continue
        condition = f"{rate}M-{loss:g}-{delay}ms-{jitter:g}"
        out.append({"name": f"{condition}-{kind}", "condition": condition, "rate_mbps": rate, "loss": loss,
                    "delay_ms": delay, "jitter_ms": delay * jitter, **queue(grid, kind, rate, delay)})
    return out


def in_order(of: list[dict]) -> list[dict]:
    """Mixed, the same each time: a run that is stopped has played of everything."""
    return sorted(of, key=lambda path: hashlib.sha256(path["name"].encode()).digest())
