"""Golden vectors of training items (golden/README.md): what the job writes, what a reader takes, what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace

from .item import MISSING, Item, as_record, dumps
from .settings import settings

#: fields that records of older jobs lack
LATER = ("loss_permille_resent", "loss_permille_now_resent", "since_drop_us", "until_drop_us")
T0 = 1_800_000_000_000_000


def items() -> list[Item]:
    """Items at the ends of what the contract allows; ratios are such that every writer prints the same digits."""

    def item(
        ap_id: str,
        site: str,
        ts_us: int,
        boot: int,
        program: int,
        features: list[int],
        now: int,
        truth: int,
        loss: float,
        offered: int,
        complete: bool,
        drops: tuple[int, int, int, int],
    ) -> Item:
        """`drops`: the loss when it was sent again, then and now [permille]; since and until the next drop [µs]."""
        first = (ap_id, site, ts_us, boot, program, features, settings()["horizon_us"], now, truth, loss, offered)
        return Item(*first, complete, "rwnd-fair", False, False, *drops)

    u64 = (1 << 64) - 1
    return [
        item("ap-1", "lab", T0, 0x1122334455667788, u64 - 1, [0, -1, 7, MISSING], 0, 0, 0.0, 0, True, (0, 0, -1, -1)),
        item(
            "ap-1",
            "lab",
            T0 + 100_000,
            u64,
            1 << 63,
            [MISSING, (1 << 63) - 1, 1 << 53, (1 << 53) + 1],
            1,
            3,
            1.0,
            (1 << 32) - 1,
            False,
            (1000, 999, 1_000_000, 3_200_000),
        ),
        item("a" * 64, "", 1, 0, 0, [], 3, 2, 0.0625, 16, True, (120, 50, 1, 0)),
        item(
            'ap-"2"\\',
            "sité",
            (1 << 53) - 1,
            (1 << 63) - 1,
            1,
            [MISSING + 1],
            2,
            1,
            0.0125,
            80,
            False,
            (0, 119, -1, 1_199_999),
        ),
    ]


def other_items() -> list[Item]:
    """Items of policies other than rwnd-fair, which are named in their records."""
    first, second = items()[:2]
    return [replace(first, policy="example"), replace(second, policy="p" + "-9" * 15)]


def lacking_items() -> list[Item]:
    """Items whose features lacked input."""
    _, second, _, fourth = items()
    return [replace(second, lacked_input=True), replace(fourth, lacked_input=True, policy="example")]


def controlled_items() -> list[Item]:
    """Items of a time at which a policy acted, or may have."""
    _, second, _, fourth = items()
    return [replace(second, under_control=True), replace(fourth, under_control=True, policy="example")]


def _values(item: Item) -> str:
    """A line of `items.txt`."""
    head = [
        item.ap_id,
        item.site or "-",
        item.ts_us,
        item.boot_id,
        item.feature_hash,
        item.horizon_us,
        item.class_now,
        item.truth,
        item.loss_ratio,
        item.offered_pkts,
        int(item.complete),
        item.loss_permille_resent,
        item.loss_permille_now_resent,
        item.since_drop_us,
        item.until_drop_us,
    ]
    return " ".join(map(str, head + item.features))


def read_too() -> list[str]:
    """Records of `items()` as no job writes them and every reader takes them: other order, blanks, later fields."""
    first, second = (as_record(i) for i in items()[:2])
    return [
        json.dumps(dict(reversed(first.items())), indent=None),
        json.dumps({"policy": "rwnd-fair", "extra": {"a": [1, {"b": None}]}} | second, ensure_ascii=True),
    ]


def refused() -> list[tuple[str, str]]:
    """Records that are no items, and the field that is wrong (`-`: the whole)."""
    good = as_record(items()[0])
    needed = [name for name in good if name not in ("site", *LATER)]
    out = [(json.dumps({k: v for k, v in good.items() if k != name}), name) for name in needed]
    for name, values in {
        "ap_id": ["", 1, None],
        "site": [7, None],
        "ts_us": [0, 1 << 53, "1", 1.0, True],
        "boot_id": [-1, 1 << 64],
        "feature_hash": [-1, 1 << 64],
        "features": [None, 1, [1.0], ["1"], [1 << 63], [MISSING - 1], [True], [None]],
        "horizon_us": [-1, 60_000_001],
        "class_now": [-1, 4],
        "class": [-1, 4, 3, False],
        "loss_ratio": [-0.5, 1.5, "0", None, True],
        "offered_pkts": [-1, 1 << 32],
        "complete": [0, 1, "true"],
        "loss_permille_resent": [-2, 1001, 0.5, None],
        "until_drop_us": [-2, 60_000_001, None],
    }.items():
        out += [(json.dumps(good | {name: value}), name) for value in values]
    return out + [(text, "-") for text in ("", "{", "[]", "3", "null", '{"ap_id": "x"', "[[[[")]


def outputs() -> dict[str, bytes]:
    """File name below `golden/` → content."""
    return {
        "items.jsonl": "".join(dumps(i) + "\n" for i in items()).encode(),
        "items.txt": "".join(_values(i) + "\n" for i in items()).encode(),
        "items.policies.jsonl": "".join(dumps(i) + "\n" for i in other_items()).encode(),
        "items.policies.txt": "".join(f"{i.policy} {_values(i)}\n" for i in other_items()).encode(),
        "items.lacking.jsonl": "".join(dumps(i) + "\n" for i in lacking_items()).encode(),
        "items.lacking.txt": "".join(f"{i.policy} {_values(i)}\n" for i in lacking_items()).encode(),
        "items.controlled.jsonl": "".join(dumps(i) + "\n" for i in controlled_items()).encode(),
        "items.controlled.txt": "".join(f"{i.policy} {_values(i)}\n" for i in controlled_items()).encode(),
        "items.read.jsonl": "".join(line + "\n" for line in read_too()).encode(),
        "items.refused.jsonl": "".join(text + "\n" for text, _ in refused()).encode(),
        "items.refused.txt": "".join(name + "\n" for _, name in refused()).encode(),
    }
