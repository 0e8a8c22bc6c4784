"""Learned marks beyond one flow behind a FIFO: several flows at one queue, and queues that an access point keeps short
by itself (mac80211's, with FQ-CoDel), where half of a queue of 8,192 packets never is. There the truth is how long a
packet lay in its queue: at least CoDel's target.

A TXQ's frames are taken when the radio builds what it sends next (lab/medium: it holds none before), so a packet left
its queue when what was sent before had come to the station; to within a transmission, some milliseconds. Each flow is a
run of its own: inputs are of one flow's acknowledgements.
"""
import copy
import json
import pathlib
import tempfile
from dataclasses import dataclass

import numpy as np
from guest.tap import places
from host import guest

from . import ecn_samples, methods, metrics, play, scenarios, tap
from .ecn_samples import AT, HELD

#: CoDel's target of a station that is not slow, in the guest's mac80211.
TARGET_NS = 20_000_000
#: A further flow each half second, all within the warm-up.
STAGGER_S = 0.5
#: Frames that come closer one after the other were of one transmission.
TOGETHER_NS = 100_000
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Variant:
    said: str
    method: str
    flows: int

    @property
    def by_time(self) -> bool:
        """Whether the truth is a wait and not a number of packets."""
        return not self.method.endswith("fifo")


VARIANTS = {
    "four": Variant("four flows, FIFO half full", "cubic-fifo", 4),
    "txq": Variant("one flow, its TXQ over 20 ms", "cubic-fq", 1),
    "txq-four": Variant("four flows, their TXQs over 20 ms", "cubic-fq", 4),
}


def truths(entered: np.ndarray, left: np.ndarray, limit_pkts: int | None) -> np.ndarray:
    """Of packets of all flows, by when they came to the queue and to the station (NEVER: they did not), whether each
    found trouble: the queue at least half full, or, without a limit, a wait of at least the target. A packet that never
    came waited for nobody knows how long: False, and no acknowledgement speaks of it.
    """
    came = left < NEVER
    leaves = np.sort(left[came])
    if limit_pkts is not None:
        order = np.argsort(entered, kind="stable")
        before = np.empty(len(entered), np.int64)
        before[order] = np.cumsum(came[order])
        return 2 * (before - np.searchsorted(leaves, entered, side="right") - HELD) >= limit_pkts
    before = np.searchsorted(leaves, left - TOGETHER_NS, side="right") - 1
    out = np.where(before >= 0, leaves[np.maximum(before, 0)], 0)
    return came & (out - entered >= TARGET_NS)


def of_talks(talks: list, wire_ns: float, limit_pkts: int | None) -> list[np.ndarray]:
    """Rows of each connection, as ecn_samples.of_talk has them, with the truth of the queue of all."""
    entered = [t.sent["t_ns"].astype(np.int64) + int(wire_ns) for t in talks]
    left = []
    for talk, at in zip(talks, entered):
        mine, came = np.full(len(at), NEVER), talk.where >= 0
        mine[came] = talk.arrived["t_ns"][talk.where[came]].astype(np.int64)
        left.append(mine)
    found = truths(np.concatenate(entered), np.concatenate(left), limit_pkts)
    out = []
    for talk, true in zip(talks, np.split(found, np.cumsum([len(at) for at in entered])[:-1])):
        rows, sent_ns, rtt_ns = talk.round_trips_of()
        at_ns = sent_ns.astype(np.int64) + rtt_ns
        order = np.argsort(at_ns, kind="stable")
        at_us = at_ns[order] // 1000
        out.append(np.stack([at_us, rtt_ns[order] // 1000, np.diff(at_us, prepend=at_us[:1]), true[rows][order]],
                            axis=1)[1:])
    return out


def given(name: str, flows: int) -> dict:
    """A scenario of the set `ecn` with so many downloads to its station."""
    made = copy.deepcopy(scenarios.load(ecn_samples.SET, name))
    made["flows"] = [made["flows"][0] | {"start_s": n * STAGGER_S} for n in range(flows)]
    return made


def sample(work: tuple[str, str, int]) -> list[np.ndarray]:
    """A run of a variant, scenario and seed, all senders with all that they can: rows of each flow after the warm-up.
    Kept in the build folder.
    """
    which, name, seed = work
    variant, scenario = VARIANTS[which], given(name, VARIANTS[which].flows)
    kept = play.BUILD / "ecn" / f"{which}-{name}-{seed}.npz"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        plan = scenarios.plan(scenario, f"{name}-{seed}", methods.method(variant.method), seed)
        plan.update(sniff_hz=0, tap=str(tap.program()))
        with tempfile.TemporaryDirectory(dir=play.BUILD) as run:
            out = pathlib.Path(run)
            guest.play(plan, out, timeout_s=play.TIMEOUT_S)
            truth = json.loads((out / f"{plan['name']}.truth.json").read_text())
            packets = tap.read(out / f"{plan['name']}.tap")
        talks = [talk for _, _, some in metrics.conversations(packets, plan, truth["flows"], places(plan))
                 for talk in some]
        rows = of_talks(talks, plan["wired"]["delay_ms"] * 1e6 / 2, None if variant.by_time else scenario["fifo_pkts"])
        for run in rows:
            run[:, AT] -= truth["begin_ns"] // 1000
        after = plan["evaluate"]["warmup_s"] * 1_000_000
        np.savez(kept, *[run[run[:, AT] >= after] for run in rows])
    with np.load(kept) as found:
        return [found[f"arr_{n}"] for n in range(variant.flows)]
