"""Golden policies: good ones, and every absurd value (golden/README.md). What is changed is the message Policy of a
bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .bundle_wire import BUNDLE, POLICY, U32, parse, write
from .policy import ENFORCE, MAX_VERSION, OFF, SHADOW, Policy, make, spec

ENFORCING = ("a site enforces", 3, ENFORCE)
#: numbers that were taken out of Policy again (`reserved` in bundle.proto): who still writes them is read without them
TAKEN_OUT = (28, 29)


def good() -> Iterator[tuple[str, Policy | None]]:
    """(name after `ok_policy_`, policy)."""
    fields = spec()["fields"]
    yield "off", Policy(OFF)
    yield "none", None
    yield "named_off", make("default", 1, OFF)
    yield "named_shadow", make("default", MAX_VERSION, SHADOW)
    yield "enforce", make(*ENFORCING)
    yield "weights", make(*ENFORCING, {"alpha": 0}, {443: 4000, 80: 10, 65535: 100_000, 1: 1000})
    yield "16_weights", make(*ENFORCING, weights={1000 + i: 100 * (i + 1) for i in range(16)})
    # all at one end; what a rule binds is as near to it as the rule allows
    yield "least", make("x", 1, SHADOW, {f["name"]: f["min"] for f in fields})
    yield "most", make("y" * 127, 7, ENFORCE, {f["name"]: f["max"] for f in fields} | {"step_us": 500_000})


def with_taken_out(payload: bytes) -> bytes:
    """The bundle as a writer that knows the numbers of TAKEN_OUT puts it: each 1000."""
    old = BUNDLE | {11: ("policy", POLICY | {n: (f"taken_out_{n}", U32, False) for n in TAKEN_OUT}, False)}
    values = parse(BUNDLE, payload)
    return write(old, values | {"policy": values["policy"] | {f"taken_out_{n}": 1000 for n in TAKEN_OUT}})


def bad() -> Iterator[tuple[str, Callable[[dict], None]]]:
    """(name after `bad_policy_`, what to do to the fields of an enforcing policy)."""
    yield "mode", lambda p: p.update(mode=3)
    yield "mode_before_name", lambda p: p.update(mode=4, name="", step_us=0)
    yield "no_name_enforce", lambda p: (p.clear(), p.update(mode=ENFORCE))
    yield "no_name_but_numbers", lambda p: p.update(mode=SHADOW, name="", version=0)
    yield "no_name_but_version", lambda p: (p.clear(), p.update(mode=SHADOW, version=1))
    yield "no_name_but_weights", lambda p: (p.clear(), p.update(mode=SHADOW, weight_port=[443]))
    yield "version", lambda p: p.update(version=0)
    yield "no_numbers", lambda p: (p.clear(), p.update(mode=ENFORCE, name="bare", version=1))
    for f in spec()["fields"]:
        if f["min"]:
            yield f"{f['name']}_low", lambda p, f=f: p.update({f["name"]: f["min"] - 1})
        yield f"{f['name']}_high", lambda p, f=f: p.update({f["name"]: f["max"] + 1})
    yield "step_us_32_bits", lambda p: p.update(step_us=(1 << 32) - 1)
    for r in spec()["rules"]:
        yield f"rule_{r['low']}_{r['high']}", lambda p, r=r: p.update(_breaks(r))
    yield "weights_unequal", lambda p: p.update(weight_port=[443, 80], weight_permille=[4000])
    yield "weights_without_ports", lambda p: p.update(weight_permille=[4000])
    yield "17_weights", lambda p: p.update(weight_port=list(range(1, 18)), weight_permille=[1000] * 17)
    yield "3000_weights", lambda p: p.update(weight_port=list(range(1, 3001)), weight_permille=[1000] * 3000)
    yield "weight_port_0", lambda p: p.update(weight_port=[443, 0], weight_permille=[4000, 1000])
    yield "weight_port_65536", lambda p: p.update(weight_port=[65536], weight_permille=[4000])
    yield "weight_port_twice", lambda p: p.update(weight_port=[443, 80, 443], weight_permille=[4000, 1000, 4000])
    yield "weight_permille_9", lambda p: p.update(weight_port=[443], weight_permille=[9])
    yield "weight_permille_100001", lambda p: p.update(weight_port=[443], weight_permille=[100_001])


def _breaks(rule: dict) -> dict[str, int]:
    """Values within their bounds that just break a rule."""
    high = next(f["min"] for f in spec()["fields"] if f["name"] == rule["high"])
    return {rule["low"]: high // rule["times"] + 1, rule["high"]: high}


def line(policy: Policy | None) -> str:
    """What `policies.txt` says of a good one."""
    if policy is None:
        return "-"
    numbers = " ".join(map(str, policy.control.values())) or "-"
    weights = ",".join(f"{p}:{w}" for p, w in policy.weights.items()) or "-"
    return f"{policy.mode} {policy.version} {numbers} {weights} {policy.name or '-'}"
