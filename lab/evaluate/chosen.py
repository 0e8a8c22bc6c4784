"""Senders whose congestion control is chosen by an earlier session: of the same flows, over the same queue, with plain
CUBIC, and of another seed, so that what luck gave the one the other does not have.

    cs_speed, cs_queue  what the committed trees of policies/cc-select say, by each of its utilities
    lc_told             oal_lc to stations of which the access point says that most of what was sent again the air had
                        lost, CUBIC to others; all ask for ECN
    le_wait             oal_ecn by a threshold: the path's shortest round trip and a wait"""
import functools
import json
import pathlib

import pandas as pd
from oal_training.cc_select import plain, statistics

from . import sender_models, sessions

TREES = pathlib.Path(__file__).with_name("results") / "cc-select/trees.json"
#: What the oracle leaves of a wait: over FQ-CoDel CUBIC keeps its throughput with it (README.md).
WAIT_US = 45_000


@functools.cache
def trees() -> dict:
    return json.loads(TREES.read_text(encoding="utf-8"))


def by_trees(model: dict, session: dict) -> str:
    """The next session's congestion control; the same where nothing is known of this one."""
    if not sessions.known(session):
        return session["cc"]
    return plain.choose(model, session["cc"], statistics.statistics(pd.DataFrame([session])).iloc[0].to_dict())


def shortest_us(before: list[dict]) -> int:
    """Of a path's sessions. ValueError where none had a round trip."""
    return min(one["min_rtt_us"] for one in before if sessions.known(one))


def told_air(session: dict) -> bool:
    return bool(session["retrans_pkts"]) and session["ap_lost_air"] >= sender_models.LEAST_AIR * session["retrans_pkts"]


def seed_before(seed: int) -> int:
    """Seeds go in pairs, so that those that are judged are enough: 1001 and 1002 choose for each other."""
    return seed + 1 if seed % 2 else seed - 1


def apply(plan: dict, control: str, before: list[dict]) -> None:
    """Give a plan's flows, but for those that stay plain, what their senders choose. `before`: the earlier sessions."""
    own = {one["flow"]: one for one in before if one["flow"] not in plan["evaluate"]["plain"]}
    if control == "le_wait":
        threshold = sender_models.pack_marks(sender_models.mark_from(shortest_us(before) + WAIT_US))
        plan["oal_ecn"] = sender_models.growing(threshold, sender_models.STEEP)
        return
    for n, session in own.items():
        if control == "lc_told":
            cc = "oal_lc" if told_air(session) else "cubic"
        else:
            cc = by_trees(trees()[control.removeprefix("cs_")], session)
        plan["flows"][n]["cc"] = cc
    if control == "lc_told":
        rule = sender_models.air_below(sender_models.MOST_ROUND_TRIP * shortest_us(before))
        plan["oal_lc"] = sender_models.pack(rule, sender_models.NO_LIMIT).hex()


def sources() -> list[pathlib.Path]:
    """What a choice is made by, beside the earlier session."""
    here = pathlib.Path(__file__)
    return [here, TREES, here.with_name("sender_models.py"), pathlib.Path(plain.__file__),
            pathlib.Path(statistics.__file__)]
