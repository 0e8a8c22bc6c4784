"""What senders with the congestion controls oal_lc (policies/loss-cause) and oal_ecn (policies/learned-ecn) have as a
model, by path. Made by lab/evaluate/loss-cause and lab/evaluate/learned-ecn.
"""
import functools
import json
import pathlib
import struct

from host import scenario
from oal_schema.centroids import MAX_INPUTS, ONE, Centroids, log2_q16

KEPT = pathlib.Path(__file__).with_name("models") / "loss-cause.json"
#: struct oal_lc_model of policies/loss-cause/ca.h: deadline; shifts, scales, centres of air and of queue, four each;
#: inputs, usable; windows kept one after the other, unused.
LAYOUT = struct.Struct("=Q16q2I2I")
IN_A_ROW, NO_LIMIT = 3, 255
#: lc_ap: losses are the air's where the access point says so of this share of what was sent again, a mark in the last
#: round trip means a queue all the same, and so does a round trip of so many times the shortest.
LEAST_AIR, MOST_ROUND_TRIP = 0.5, 4.0

#: Sender of methods.SENDERS → which of a path's models it has. lc: K-means on windows and round trips, where the fit is
#: of use; lc_paper: whether it is or not, as published; lc_rtt: the same by round trips alone; lc_rule: no fit but a
#: share of the path's shortest round trip; lc_ap: what the access point says of the path's losses, and its marks.
MODELS = {"lc": "kmeans", "lc_paper": "paper", "lc_rtt": "rtt", "lc_rule": "rule", "lc_ap": "ap", "lc_truth": "truth"}
#: `usable` is 2: the lab's kernel decides by where the packet was lost.
TRUTH = LAYOUT.pack(0, *[0] * 16, 2, 2, NO_LIMIT, 0)
#: struct oal_ecn_model of policies/learned-ecn/ca.h: deadline; shifts, scales, centres; inputs, usable; steep; unused.
MARKS_LAYOUT = struct.Struct("=Q16q4I")
KEPT_MARKS = KEPT.with_name("learned-ecn.json")
#: Most that a window grows in a round trip: a part of 1 << that of it.
STEEP = 3
#: Sender of methods.SENDERS → (which of a path's models it has, `steep`). le: K-means on round trips and times between
#: acknowledgements; le_rtt: a threshold of round trips. le_steep, le_rtt_steep: the same marks, and growth that doubles
#: while there are none.
MARKS = {f"{sender}{more}": (which, steep) for more, steep in (("", 0), ("_steep", STEEP)) for sender, which in (
    ("le", "kmeans"), ("le_rtt", "rtt"))}
#: No model: oal_lc is CUBIC.
NONE = bytes(LAYOUT.size)


def air_below(rtt_us: float) -> Centroids:
    """No fit, in the form of one: a loss at a round trip below so many µs is one of the air."""
    return Centroids((log2_q16(round(rtt_us)),), (ONE,), (-ONE,), (ONE,), True)


def mark_from(rtt_us: float) -> Centroids:
    """The same of marks: round trips from there on are those of a queue half full."""
    return air_below(max(1, round(rtt_us) - 1))


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


@functools.cache
def kept_marks() -> dict:
    """By scenario: what was fitted for oal_ecn, as `kept`."""
    return json.loads(KEPT_MARKS.read_text(encoding="utf-8")) if KEPT_MARKS.exists() else {}


def marks(control: str, name: str) -> str | None:
    """As `model`, of senders with the congestion control oal_ecn."""
    if control not in MARKS:
        return None
    if name not in kept_marks():
        raise scenario.ScenarioError(f"no marks for {name}: run lab/evaluate/learned-ecn first")
    which, steep = MARKS[control]
    return growing(kept_marks()[name]["models"][which], steep)


def growing(packed: str, steep: int) -> str:
    """A model of oal_ecn with that growth."""
    *values, _, unused = MARKS_LAYOUT.unpack(bytes.fromhex(packed))
    return MARKS_LAYOUT.pack(*values, steep, unused).hex()


def pack_marks(c: Centroids) -> str:
    """The model of oal_ecn: `air` is the centre of a queue less than half full."""
    padded = [of + (without,) * (MAX_INPUTS - len(of)) for of, without in (
        (c.shift, 0), (c.scale, 1), (c.air, 0), (c.queue, 0))]
    return MARKS_LAYOUT.pack(0, *(v for of in padded for v in of), len(c.shift), int(c.usable), 0, 0).hex()


def model(control: str, name: str, queue: str) -> str | None:
    """What a method's senders have in a scenario, as hexadecimal digits for the guest; None for other senders."""
    if control not in MODELS:
        return None
    if MODELS[control] == "truth":
        return TRUTH.hex()
    if f"{name}/{queue}" not in kept():
        raise scenario.ScenarioError(f"no model for {name} over {queue}: run lab/evaluate/loss-cause first")
    return kept()[f"{name}/{queue}"]["models"][MODELS[control]] or NONE.hex()
