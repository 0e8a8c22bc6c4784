"""Acknowledgements of a download with what its sender sees of each, and whether its packet found the access point's
queue at least half full: rows on which learned marks (ecn_fit.py) are fitted and judged.

The queue is counted of the packets themselves, by the tap's one clock: a packet comes to it half of the wire's delay
after its server sent it, finds those that came before it and are not at the station yet, and what the radio itself
holds (lab/medium: 64 frames, after which it stops the queue, 40 before it goes on) is taken off. That is the FIFO's
length to within some 24 packets. What was dropped never waited."""
import json
import pathlib
import tempfile

import numpy as np
from guest.tap import places
from host import guest

from . import methods, metrics, play, scenarios, tap

SET = "ecn"
#: Columns of a row: when the acknowledgement came, its round trip and time since the one before, µs; 1: half full.
AT, RTT, APART, HALF = range(4)
#: Frames that a radio of the lab holds below its queue.
HELD = 64


def of_talk(talk, wire_ns: float, limit_pkts: int) -> np.ndarray:
    """Rows of a connection, in order of time. Acknowledgements that tell no round trip are left out."""
    rows, sent_ns, rtt_ns = talk.round_trips_of()
    came = talk.where >= 0
    leaves = np.sort(talk.arrived["t_ns"][talk.where[came]].astype(np.int64))
    entered = talk.sent["t_ns"].astype(np.int64) + int(wire_ns)
    before = np.cumsum(came) - np.searchsorted(leaves, entered, side="right")  # itself counts
    waiting = (before - HELD)[rows]
    at_ns = sent_ns.astype(np.int64) + rtt_ns
    order = np.argsort(at_ns, kind="stable")
    at_us = at_ns[order] // 1000
    return np.stack([at_us, rtt_ns[order] // 1000, np.diff(at_us, prepend=at_us[:1]),
                     2 * waiting[order] >= limit_pkts], axis=1)[1:]


def of_run(plan: dict, folder: pathlib.Path, limit_pkts: int) -> np.ndarray:
    """Rows of a run with one download, after its warm-up; times are since it began."""
    truth = json.loads((folder / f"{plan['name']}.truth.json").read_text())
    packets = tap.read(folder / f"{plan['name']}.tap")
    ((_, _, (talk,)),) = metrics.conversations(packets, plan, truth["flows"], places(plan))
    rows = of_talk(talk, plan["wired"]["delay_ms"] * 1e6 / 2, limit_pkts)
    rows[:, AT] -= truth["begin_ns"] // 1000
    return rows[rows[:, AT] >= plan["evaluate"]["warmup_s"] * 1_000_000]


def play_one(name: str, seed: int, offers_mbps: float) -> tuple[np.ndarray, float]:
    """(rows, what was delivered, Mbit/s) of a run of plain CUBIC behind a FIFO. `offers_mbps`: of the sender, 0: all
    that it can.
    """
    given = scenarios.load(SET, name)
    plan = scenarios.plan(given, f"{name}-{seed}", methods.method("cubic-fifo"), seed)
    plan["flows"][0]["rate_mbps"] = offers_mbps
    plan.update(sniff_hz=0, tap=str(tap.program()))
    with tempfile.TemporaryDirectory(dir=play.BUILD) as run:
        out = pathlib.Path(run)
        guest.play(plan, out, timeout_s=play.TIMEOUT_S)
        truth = json.loads((out / f"{plan['name']}.truth.json").read_text())
        return of_run(plan, out, given["fifo_pkts"]), truth["flows"][0]["acked_bytes"] * 8e-6 / plan["duration_s"]


def sample(work: tuple[str, int, float]) -> dict[str, np.ndarray]:
    """Two runs of a scenario and seed: rows where the sender sends all that it can (`greedy`), and rows where it offers
    that share of what it had then (`offered`). Kept in the build folder: a run that was stopped goes on.
    """
    name, seed, load = work
    kept = play.BUILD / "ecn" / f"{name}-{seed}-{load:g}.npz"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        greedy, had_mbps = play_one(name, seed, 0)
        offered, _ = play_one(name, seed, round(load * had_mbps, 2))
        np.savez(kept, greedy=greedy, offered=offered, had_mbps=had_mbps)
    with np.load(kept) as found:
        return {key: found[key] for key in found.files}
