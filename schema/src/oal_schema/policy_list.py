"""`numbers.yaml` as Python objects, checked against `Policy` of bundle.proto. For the generator; at run time see
`policy.py`.
"""

from __future__ import annotations

import re

import yaml

#: fields of Policy before the numbers
HEAD = [("mode", 1), ("name", 2), ("version", 3)]
FIELD_KEYS = ["name", "min", "max", "default", "unit", "doc"]
WEIGHT_KEYS = ["ports", "values", "max", "port_min", "port_max", "value_min", "value_max"]


class PolicyListError(ValueError):
    """numbers.yaml contradicts itself or bundle.proto; the message names the item."""


def read(text: str, message: list[tuple[str, int]]) -> dict:
    """The list as the generator writes it down. `message`: (name, number) of the fields of Policy in bundle.proto."""
    source = yaml.safe_load(text)
    names = [f.get("name") for f in source["fields"]]
    for f in source["fields"]:
        if list(f) != FIELD_KEYS or not re.fullmatch(r"[a-z][a-z0-9_]*", f["name"]) or names.count(f["name"]) != 1:
            raise PolicyListError(
                f"numbers.yaml: field {f.get('name')}: a field has {', '.join(FIELD_KEYS)}, in this order, and a name "
                f"of its own"
            )
        if not 0 <= f["min"] <= f["default"] <= f["max"] < 1 << 32:
            raise PolicyListError(f"numbers.yaml: field {f['name']}: 0 <= min <= default <= max < 2^32 does not hold")
    default = {f["name"]: f["default"] for f in source["fields"]}
    for r in source["rules"]:
        if list(r) != ["low", "times", "high", "doc"] or r["low"] not in default or r["high"] not in default:
            raise PolicyListError(f"numbers.yaml: rule {r}: it has low, times, high, doc, and low and high are fields")
        if r["times"] * default[r["low"]] > default[r["high"]]:
            raise PolicyListError(f"numbers.yaml: the defaults break the rule {r['times']} * {r['low']} <= {r['high']}")
    weights = source["weights"]
    if list(weights) != WEIGHT_KEYS:
        raise PolicyListError(f"numbers.yaml: weights has {', '.join(WEIGHT_KEYS)}")
    number = dict(message)
    want = [n for n, _ in HEAD] + names + [weights["ports"], weights["values"]]
    if [m for m in message if m in HEAD] != HEAD or number.get(
            weights["values"]) != number.get(weights["ports"], 0) + 1:
        raise PolicyListError(f"bundle.proto: Policy begins with {HEAD}, and its weights stand side by side")
    if wrong := sorted(set(want) ^ set(number)):
        raise PolicyListError(f"bundle.proto: Policy is not the list of numbers.yaml: {', '.join(wrong)}")
    return {
        "fields": [f | {"field": number[f["name"]]} for f in source["fields"]],
        "rules": source["rules"],
        "weights": weights | {"field": number[weights["ports"]]},
        "modes": source["modes"],
        "rewrite_reasons": source["rewrite_reasons"],
        "rewrite_backends": source["rewrite_backends"],
        "actions": source["actions"],
        "congestion_controls": source["congestion_controls"],
    }


def declare(text: str, proto: str) -> str:
    """bundle.proto with a field of Policy for each number of numbers.yaml (`text`) that has none yet, after the last
    one.

    A field keeps its number for ever, wherever its line in numbers.yaml stands; that of one that was taken out
    (`reserved`) is never given again.
    """
    found = re.search(r"^message Policy \{\n(.*?)^\}\n", proto, re.M | re.S)
    if not found:
        raise PolicyListError("bundle.proto has no message Policy")
    fields = re.findall(r"^  (?:repeated )?\w+ (\w+) = (\d+);", found[1], re.M)
    taken_out = [n for numbers in re.findall(r"^  reserved ([\d, ]+);", found[1], re.M) for n in numbers.split(",")]
    there, last = {name for name, _ in fields}, max(int(n) for n in [*(number for _, number in fields), *taken_out])
    new = [f["name"] for f in yaml.safe_load(text)["fields"] if f["name"] not in there]
    lines = "".join(f"  uint32 {name} = {last + i};\n" for i, name in enumerate(new, 1))
    return proto[: found.end(1)] + lines + proto[found.end(1) :]
