"""What senders with the congestion control oal_lc (policies/loss-cause) have as a model, by path. Made by
lab/evaluate/loss-cause.
"""
import functools
import json
import pathlib
import struct

from host import scenario
from oal_schema.centroids import Centroids

KEPT = pathlib.Path(__file__).with_name("models") / "loss-cause.json"
#: struct oal_lc_model of policies/loss-cause/ca.h: deadline; shifts, scales, centres of air and of queue, four each;
#: inputs, usable; windows kept one after the other, unused.
LAYOUT = struct.Struct("=Q16q2I2I")
IN_A_ROW, NO_LIMIT = 3, 255

#: Sender of methods.SENDERS → which of a path's models it has. lc: K-means on windows and round trips, where the fit is
#: of use; lc_paper: whether it is or not, as published; lc_rtt: the same by round trips alone; lc_rule: no fit but a
#: share of the path's shortest round trip; lc_ap: what the access point says of the path's losses, and its marks.
MODELS = {"lc": "kmeans", "lc_paper": "paper", "lc_rtt": "rtt", "lc_rule": "rule", "lc_ap": "ap", "lc_truth": "truth"}
#: `usable` is 2: the lab's kernel decides by where the packet was lost.
TRUTH = LAYOUT.pack(0, *[0] * 16, 2, 2, NO_LIMIT, 0)
#: No model: oal_lc is CUBIC.
NONE = bytes(LAYOUT.size)


def pack(c: Centroids, in_a_row: int) -> bytes:
    """The kernel's model of centres of (window, round trip), or of round trips alone: the window then is as far from
    the one as from the other.
    """
    shift, scale, air, queue = ((without,) * (2 - len(of)) + of + (0, 0) for of, without in (
        (c.shift, 0), (c.scale, 1), (c.air, 0), (c.queue, 0)))
    return LAYOUT.pack(0, *shift, *scale, *air, *queue, 2, int(c.usable), in_a_row, 0)


@functools.cache
def kept() -> dict:
    """By scenario/queue: what was fitted; `models`: hexadecimal digits, null where the fit is of no use."""
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def model(control: str, name: str, queue: str) -> str | None:
    """What a method's senders have in a scenario, as hexadecimal digits for the guest; None for other senders."""
    if control not in MODELS:
        return None
    if MODELS[control] == "truth":
        return TRUTH.hex()
    if f"{name}/{queue}" not in kept():
        raise scenario.ScenarioError(f"no model for {name} over {queue}: run lab/evaluate/loss-cause first")
    return kept()[f"{name}/{queue}"]["models"][MODELS[control]] or NONE.hex()
