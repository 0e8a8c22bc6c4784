"""Models for senders with the congestion control oal_lc (policies/loss-cause), a path each.

    lab/evaluate/loss-cause [--jobs N]    plays the set `sender` with plain CUBIC at earlier seeds, samples its windows
        and round trips as a host's agent does, fits two centres to each path's, and writes models/loss-cause.json

What is judged is played at other seeds. A path whose fit is of no use has no model for `lc`: its senders are CUBIC."""
from __future__ import annotations

import argparse
import collections
import json
import pathlib
import tempfile

import numpy as np
from host import guest
from oal_training.centroids import fit
from sniffer import sinks

from . import methods, play, pool, scenarios
from .sender_models import KEPT

SET = "sender"
SEEDS = range(901, 904)  # neither those of `tune` nor those that are judged
QUEUES = ("fifo", "fq")
RATE_HZ = 50
WARMUP_S = 4
RULE = 1.25  # of the shortest round trip
#: lc_ap: losses are the air's where the access point says so of this share of what was sent again, a mark in the last
#: round trip means a queue all the same, and so does a round trip of so many times the shortest.
LEAST_AIR, MOST_ROUND_TRIP = 0.5, 4.0

def sample(work: tuple[str, str, int, pathlib.Path]) -> tuple[np.ndarray, np.ndarray]:
    """(windows in segments, round trips in µs) of a run of plain CUBIC, in order of time."""
    name, queue, seed, folder = work
    plan = scenarios.plan(scenarios.load(SET, name), f"{name}-{queue}-{seed}", methods.method(f"cubic-{queue}"), seed)
    plan.update(sniff_hz=RATE_HZ, python="")
    with tempfile.TemporaryDirectory(dir=folder) as run:
        guest.play(plan, pathlib.Path(run), timeout_s=play.TIMEOUT_S)
        rows = list(sinks.read(pathlib.Path(run) / f"{plan['name']}.sender.jsonl.gz"))
    begin = min(r["ts"] for r in rows) + WARMUP_S * 1_000_000
    used = [r for r in rows if r["ts"] >= begin and r["rtt_us"] and r["mss_bytes"]]
    return np.array([r["cwnd_bytes"] // r["mss_bytes"] for r in used]), np.array([r["rtt_us"] for r in used])


def said_by_ap(work: tuple[str, str, int, pathlib.Path]) -> tuple[int, int]:
    """(losses that the access point calls the air's, segments sent again) of a run of plain CUBIC with ECN."""
    name, queue, seed, _ = work
    cell = play.Cell(SET, name, methods.method(f"cubic_ecn-{queue}+diagnose"), seed)
    settings = play.Settings(exporter=play.snapshot(play.EXPORTER))
    found = play.result(cell, settings) or play.play(cell, settings)
    return sum(one["cause"] == "air" for one in found["losses"]), int(found["cell"]["retransmissions"])


def described(found: fit.Centroids | fit.Useless) -> dict:
    """A fit's figures; `air` and `congested`: the centres as segments and µs."""
    made = found if isinstance(found, fit.Centroids) else found.centroids
    out = {"useless": found.reason} if isinstance(found, fit.Useless) else {}
    if made is None:
        return out
    back = lambda centre: [float(np.round(2 ** (m + d * z) - 1, 1))
                           for m, d, z in zip(made.mean, made.deviation, centre)]
    return out | {"silhouette": round(made.silhouette, 3), "rtt_ratio": round(made.rtt_ratio, 3),
                  "points": made.points, "air": back(made.air), "congested": back(made.congested)}


def of_path(segments: np.ndarray, rtt_us: np.ndarray, air: int, again: int) -> dict:
    """The models of a path, and what the fits were like; air of `again` losses are the air's as its AP says."""
    both, rtt = fit.fit(segments, rtt_us), fit.fit(segments, rtt_us, rtt_only=True)
    paper, alone = (f if isinstance(f, fit.Centroids) else f.centroids for f in (both, rtt))
    packed = lambda made, in_a_row=fit.NO_LIMIT: made and made.pack(in_a_row=in_a_row).hex()
    believed = again and air >= LEAST_AIR * again
    return {
        "kmeans": described(both), "rtt": described(rtt), "shortest_us": int(rtt_us.min()),
        "ap": {"air": air, "again": again}, "models": {
            "kmeans": packed(both, fit.IN_A_ROW) if isinstance(both, fit.Centroids) else None, "paper": packed(paper),
            "rtt": packed(alone), "rule": packed(fit.rule(RULE * rtt_us.min())),
            "ap": packed(fit.rule(MOST_ROUND_TRIP * rtt_us.min())) if believed else None
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
    return {path: of_path(*(np.concatenate(part) for part in zip(*points[path])), *np.sum(said[path], axis=0).tolist())
            for path in sorted(points)}


def main() -> None:
    p = argparse.ArgumentParser(prog="lab/evaluate/loss-cause", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=2, help="guests at once (2)")
    found = train(p.parse_args().jobs)
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for path, of in found.items():
        print(f"{path}: {of['kmeans'].get('useless', 'of use')}; by its AP {of['ap']}")


if __name__ == "__main__":
    main()
