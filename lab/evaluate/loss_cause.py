"""Models for senders with the congestion control oal_lc (policies/loss-cause), a path each.

    lab/evaluate/loss-cause [--jobs N]    plays the set `sender` with plain CUBIC at earlier seeds, samples its windows
        and round trips as a host's agent does, fits two centres to each path's, and writes models/loss-cause.json
    lab/evaluate/loss-cause --bbr         plays instead what being told could bring BBR (bbr_told.py)

What is judged is played at other seeds. A path whose fit is of no use has no model for `lc`: its senders are CUBIC."""
from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import tempfile

import numpy as np
from host import guest
from oal_training.loss import clusters as fit
from oal_training.loss.points import Points, of_rows
from sniffer import sinks

from . import bbr_told, methods, play, pool, scenarios, sender_models
from .sender_models import KEPT, LEAST_AIR, MOST_ROUND_TRIP, air_below

SET = "sender"
SEEDS = range(901, 904)  # neither those of `tune` nor those that are judged
QUEUES = ("fifo", "fq")
RATE_HZ = 50
WARMUP_S = 4
RULE = 1.25  # of the shortest round trip

def sample(work: tuple[str, str, int, pathlib.Path]) -> np.ndarray:
    """Points (window in segments, round trip in µs) of a run of plain CUBIC, in order of time."""
    name, queue, seed, folder = work
    plan = scenarios.plan(scenarios.load(SET, name), f"{name}-{queue}-{seed}", methods.method(f"cubic-{queue}"), seed)
    plan.update(sniff_hz=RATE_HZ, python="")
    with tempfile.TemporaryDirectory(dir=folder) as run:
        guest.play(plan, pathlib.Path(run), timeout_s=play.TIMEOUT_S)
        rows = list(sinks.read(pathlib.Path(run) / f"{plan['name']}.sender.jsonl.gz"))
    begin = min(r["ts"] for r in rows) + WARMUP_S * 1_000_000
    used = [r | {"ts_us": r["ts"]} for r in rows if r["ts"] >= begin]
    names = ("ts_us", "flow_id", "cwnd_bytes", "mss_bytes", "rtt_us", "lost_pkts")
    kinds = {"flow_id": np.uint64}
    return of_rows({name: np.array([r[name] for r in used], kinds.get(name, np.int64)) for name in names}, None).x


def said_by_ap(work: tuple[str, str, int, pathlib.Path]) -> tuple[int, int]:
    """(losses that the access point calls the air's, segments sent again) of a run of plain CUBIC with ECN."""
    name, queue, seed, _ = work
    cell = play.Cell(SET, name, methods.method(f"cubic_ecn-{queue}+diagnose"), seed)
    settings = play.Settings(exporter=play.snapshot(play.EXPORTER))
    found = play.result(cell, settings) or play.play(cell, settings)
    return sum(one["cause"] == "air" for one in found["losses"]), int(found["cell"]["retransmissions"])


def clusters(x: np.ndarray) -> fit.Clusters:
    return fit.fit(Points(x, np.zeros(len(x), np.uint64), None))


def described(made: fit.Clusters) -> dict:
    """A fit's figures; `air` and `congested`: the centres as (segments, µs)."""
    air, congested = np.round(made.centres(), 1).tolist()
    return {"refused": made.refused, "silhouette": round(made.silhouette, 3), "rtt_ratio": round(made.rtt_ratio, 3),
            "points": made.points, "air": air, "congested": congested}


def of_path(x: np.ndarray, air: int, again: int) -> dict:
    """The models of a path, and what the fits were like; `air` of `again` losses are the air's as its AP says."""
    both, alone = clusters(x), clusters(x[:, 1:])
    shortest_us = float(x[:, 1].min())
    packed = lambda c, in_a_row=sender_models.NO_LIMIT: sender_models.pack(c, in_a_row).hex()
    as_published = lambda made: packed(dataclasses.replace(made.integers(), usable=made.agree))
    return {
        "kmeans": described(both), "rtt": described(alone), "shortest_us": round(shortest_us),
        "ap": {"air": air, "again": again}, "models": {
            "kmeans": None if both.refused else packed(both.integers(), sender_models.IN_A_ROW),
            "paper": as_published(both), "rtt": as_published(alone), "rule": packed(air_below(RULE * shortest_us)),
            "ap": packed(air_below(MOST_ROUND_TRIP * shortest_us)) if again and air >= LEAST_AIR * again else None
        }
    }


def of_each(what, todo: list, jobs: int) -> dict[str, list]:
    """What each run gives, by path."""
    out = collections.defaultdict(list)
    for work, found, error in pool.each(what, todo, jobs):
        if error:
            raise SystemExit(f"evaluate: {work[0]} over {work[1]} failed: {error}")
        out[f"{work[0]}/{work[1]}"].append(found)
        print(f"{what.__name__}: {sum(map(len, out.values()))} of {len(todo)}", flush=True)
    return out


def train(jobs: int) -> dict:
    play.BUILD.mkdir(parents=True, exist_ok=True)
    todo = [(name, queue, seed, play.BUILD) for name in scenarios.names(SET) for queue in QUEUES for seed in SEEDS]
    points, said = of_each(sample, todo, jobs), of_each(said_by_ap, todo, jobs)
    return {path: of_path(np.concatenate(points[path]), *np.sum(said[path], axis=0).tolist())
            for path in sorted(points)}


def main() -> None:
    p = argparse.ArgumentParser(prog="lab/evaluate/loss-cause", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=2, help="guests at once (2)")
    p.add_argument("--bbr", action="store_true", help="what being told could bring BBR, and CUBIC, at the most")
    args = p.parse_args()
    if args.bbr:
        print(bbr_told.text(bbr_told.measure(args.jobs)))
        return
    found = train(args.jobs)
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for path, of in found.items():
        print(f"{path}: {'; '.join(of['kmeans']['refused']) or 'of use'}; by its AP {of['ap']}")


if __name__ == "__main__":
    main()
