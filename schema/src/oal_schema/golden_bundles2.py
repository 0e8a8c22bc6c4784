"""Golden bundles of format 2 (golden/README.md): good ones, and what is refused of models, law and policy name.

Program, trees, window models and policies are checked as in format 1; of each a case or two shows that they are.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache

from . import wire
from .bundle import Bundle, encode, sign
from .bundle_law import Law
from .bundle_models import Model
from .bundle_wire import BUNDLE, parse, write
from .golden_bundles import KEY, SERIAL, bundle, feature_hash, judged, line, random_tree, random_window, text
from .golden_file import container
from .policy import ENFORCE, make

VALUES = (0, 0, 60_000, 30_000)
DIRECT = Law("direct", values=VALUES)
MARK = Law("mark", "station", "mark")
CAP = Law("backlog_cap")
CC = Law("direct", "destination", "cc", (1, 3, 8, 0))


def direct(**changes) -> Bundle:
    """A good bundle of policy `example`: a tree of 31 nodes, a window for each class."""
    return bundle(**{"law": DIRECT, "of_policy": "example"} | changes)


def _good() -> list[tuple[str, Bundle, str | None]]:
    """(name, bundle, name of the bundle in force) of what is taken and written in format 2."""
    tree, window = random_tree(1, 31), random_window(6, 20, 15)
    four = [
        Model("class", tree),
        Model("window", window),
        Model("sixteen-letters-", random_tree(7, 63)),
        Model("again", random_window(8, 2, 3)),
    ]
    older = direct(serial=SERIAL - 9, version=2)
    return [
        ("ok_direct", direct(), None),
        ("ok_direct_ap", direct(law=Law("direct", "ap", values=(0, 1, 1 << 40, 1460))), None),
        ("ok_direct_values_0", direct(law=Law("direct", values=(0, 0, 0, 0))), None),
        ("ok_direct_four_models", direct(models=four, source="online"), None),
        ("ok_direct_window_first", direct(models=four[1::-1]), None),
        ("ok_direct_enforce", direct(policy=make("a site enforces", 3, ENFORCE)), None),
        ("ok_direct_no_policy", direct(policy=None), None),
        ("ok_direct_of_rwnd_fair", direct(of_policy="rwnd-fair"), None),
        ("ok_fair_of_another", bundle(window=window, of_policy="x"), None),
        ("ok_fair_longest_name", bundle(of_policy="a" + 30 * "-"), None),
        ("ok_fair_third_model", bundle(models=[Model("class", tree), Model("other", random_tree(9, 3))]), None),
        ("ok_mark", direct(law=MARK, of_policy="mark", policy=make("mark", 1, ENFORCE)), None),
        ("ok_mark_no_models", direct(law=MARK, of_policy="mark", models=[]), None),
        ("ok_cap", direct(law=CAP, of_policy="uplink-cap", models=[], policy=make("cap", 1, ENFORCE)), None),
        ("ok_cc", direct(law=CC, of_policy="cc-select", policy=make("cc", 1, ENFORCE)), None),
        ("ok_older", older, None),
        ("ok_newer", direct(serial=SERIAL + 9, version=4), "ok_direct"),
        ("ok_in_force_itself", direct(), "ok_direct"),
    ]


def _fair(payload: bytes) -> dict:
    """What a bundle of format 1 says, in format 2. No writer does; readers take it."""
    v = parse(BUNDLE, payload)
    golden = v["golden"]
    models = [
        {
            "role": "class",
            "kind": "tree",
            "tree": v["tree"],
            "golden_input": golden["features"],
            "golden_answer": golden["leaf"],
        },
        {
            "role": "window",
            "kind": "sum",
            "sum": v["window"],
            "golden_input": golden["window_input"],
            "golden_answer": golden["window_bytes"],
        },
    ]
    return v | {
        "format": 2,
        "tree": None,
        "window": None,
        "golden": None,
        "models": models,
        "law": Law().columns(),
        "of_policy": "rwnd-fair",
    }


def _shuffled(values: dict) -> bytes:
    """The same bundle as another writer might put it: fields in another order, a list not packed, unknown fields."""
    out = bytearray()
    wire.put_bytes(out, 15, values["of_policy"].encode())
    wire.put_uint(out, 77, 5)
    law = bytearray()
    for v in values["law"]["values"]:
        wire.put_varint(law, 4 << 3)
        wire.put_varint(law, wire.zigzag(v))
    wire.put_bytes(law, 99, b"from the future")
    for number, name in ((3, "action"), (1, "name"), (2, "subject")):
        wire.put_bytes(law, number, values["law"][name].encode())
    wire.put_bytes(out, 14, bytes(law))
    return bytes(out) + write(BUNDLE, values | {"law": None, "of_policy": ""})


@lru_cache(maxsize=1)
def cases() -> list[tuple[str, bytes, str | None]]:
    """As `golden_bundles.cases`."""
    payloads: dict[str, bytes] = {}
    out: list[tuple[str, bytes, str | None]] = []
    for name, b, in_force in _good():
        payloads[name] = encode(b)
        assert b.format == 2, name
        out.append((name, sign(payloads[name], KEY), in_force))
    payloads["ok_fair_said_in_2"] = write(BUNDLE, _fair(encode(bundle(window=random_window(6, 20, 15)))))
    payloads["ok_shuffled"] = _shuffled(parse(BUNDLE, payloads["ok_direct"]))
    out += [(name, sign(payloads[name], KEY), None) for name in ("ok_fair_said_in_2", "ok_shuffled")]

    def bad(name: str, change: Callable[[dict], None], base: str = "ok_direct", in_force: str | None = None) -> None:
        values = deepcopy(parse(BUNDLE, payloads[base]))
        change(values)
        out.append((name, sign(write(BUNDLE, values), KEY), in_force))

    def law(case: str, base: str = "ok_direct", **fields) -> None:
        bad(f"unsupported_format_law_{case}", lambda v: v["law"].update(fields), base)

    def first_model(case: str, **fields) -> None:
        bad(case, lambda v: v["models"][0].update(fields))

    one = parse(BUNDLE, encode(bundle(window=random_window(6, 20, 15))))
    bad("unsupported_format_3", lambda v: v.update(format=3))
    bad("unsupported_format_source", lambda v: v.update(source=0))
    bad("unsupported_format_no_program", lambda v: v.update(program=None))
    bad("unsupported_format_no_models", lambda v: v.update(models=[]))
    bad(
        "unsupported_format_five_models",
        lambda v: v.update(models=[v["models"][0] | {"role": r} for r in ("class", *"abcd")]),
    )
    bad("unsupported_format_role_twice", lambda v: v.update(models=v["models"] * 2))
    first_model("unsupported_format_no_role", role="")
    first_model("unsupported_format_long_role", role="seventeen-letters")
    first_model("unsupported_format_no_kind", kind="")
    first_model("unsupported_format_unknown_kind", kind="centroids")
    first_model("unsupported_format_no_table", tree=None)
    first_model("unsupported_format_other_table", kind="sum")
    first_model("unsupported_format_two_tables", sum=one["window"])
    bad("unsupported_format_no_law", lambda v: v.update(law=None))
    bad("unsupported_format_empty_law", lambda v: v.update(law={}))
    law("unknown", name="backlog")
    law("mark_on_flow", name="mark", values=[])
    law("mark_by_rwnd", "ok_mark", action="rwnd")
    law("mark_with_values", "ok_mark", values=[0, 0, 0, 0])
    law("cap_on_station", "ok_cap", subject="station")
    law("cap_by_mark", "ok_cap", action="mark")
    law("cap_with_values", "ok_cap", values=[0, 0, 0, 0])
    law("direct_no_models", "ok_mark_no_models", name="direct", subject="flow", action="rwnd", values=[0, 0, 1, 1])
    law("fair_no_models", "ok_cap", name="fair_window")
    law("fair_by_mark", "ok_fair_of_another", action="mark")
    law("subject_station", subject="station")
    law("subject_destination", subject="destination")
    law("cc_on_flow", "ok_cc", subject="flow")
    law("cc_unknown_control", "ok_cc", values=[1, 3, 9, 0])
    law("no_subject", subject="")
    law("action", action="mark")
    law("no_action", action="")
    law("no_values", values=[])
    law("three_values", values=[0, 0, 1])
    law("five_values", values=[0, 0, 1, 1, 1])
    law("negative_value", values=[0, 0, 0, -1])
    law("large_value", values=[0, 0, 0, (1 << 40) + 1])
    law("fair_with_values", "ok_fair_of_another", values=[0, 0, 0, 0])
    law("fair_on_ap", "ok_fair_of_another", subject="ap")
    first_model("unsupported_format_no_class", role="classes")
    bad(
        "unsupported_format_class_is_a_sum",
        lambda v: (v["models"][0].update(role="class"), v["models"][1].update(role="tree")),
        "ok_direct_window_first",
    )
    bad("unsupported_format_window_is_a_tree", lambda v: v["models"][1].update(role="window"), "ok_fair_third_model")
    bad("unsupported_format_before_malformed", lambda v: (v.update(of_policy=""), v["law"].update(action="")))
    bad("malformed_serial", lambda v: (v.update(serial=0), v["law"].update(action="")))
    bad("malformed_role", lambda v: v["models"][0].update(role="a\nb"))
    bad("malformed_tree_of_format_1", lambda v: v.update(tree=one["tree"]))
    bad("malformed_window_of_format_1", lambda v: v.update(window=one["window"]))
    bad("malformed_golden_of_format_1", lambda v: v.update(golden={}))
    bad("malformed_before_wrong_target", lambda v: v.update(golden={}, target="ap/ap-2"))
    for name, text_ in (
        ("none", ""),
        ("capital", "Example"),
        ("digit_first", "1x"),
        ("dash_first", "-x"),
        ("dot", "a.b"),
        ("32_characters", "a" * 32),
        ("slash", "a/b"),
    ):
        bad(f"malformed_of_policy_{name}", lambda v, text_=text_: v.update(of_policy=text_))
    out.append(
        ("malformed_two_laws", sign(payloads["ok_direct"] + write(BUNDLE, {"law": DIRECT.columns()}), KEY), None)
    )
    for name in ("models", "law", "of_policy"):
        given = parse(BUNDLE, payloads["ok_direct"])[name]
        out.append((f"malformed_{name}_in_format_1", sign(write(BUNDLE, one | {name: given}), KEY), None))

    bad("wrong_target_ap", lambda v: v.update(target="ap/ap-2"))
    bad("replayed_older", lambda v: None, "ok_older", "ok_direct")
    bad("bad_program_operator", lambda v: v["program"]["op"].__setitem__(3, 99))
    bad("bad_tree_cycle", lambda v: v["models"][0]["tree"]["right"].__setitem__(-1, 0))
    bad("bad_tree_of_third_model", lambda v: v["models"][2]["tree"]["right"].pop(), "ok_direct_four_models")
    bad("bad_window_model_shift", lambda v: v["models"][1]["sum"].update(shift=41), "ok_direct_four_models")
    bad(
        "bad_window_model_before_bad_tree",
        lambda v: (v["models"][0]["sum"].update(lo=2, hi=1), v["models"][1]["tree"]["right"].pop()),
        "ok_direct_window_first",
    )
    bad("bad_policy_mode", lambda v: v["policy"].update(mode=3))
    bad("bad_policy_no_name_enforce", lambda v: v["policy"].update(mode=ENFORCE))
    bad("feature_mismatch_first", lambda v: v["models"][0]["tree"].update(feature_hash=feature_hash() ^ 1))
    bad("feature_mismatch_last", lambda v: v["models"][3]["sum"].update(feature_hash=0), "ok_direct_four_models")
    bad("golden_mismatch_leaf", lambda v: v["models"][0]["golden_answer"].__setitem__(1, 4_000))
    bad("golden_mismatch_wide_answer", lambda v: _raise(v["models"][0]["golden_answer"], 1 << 32))
    bad("golden_mismatch_negative_answer", lambda v: v["models"][0]["golden_answer"].__setitem__(0, -1))
    bad("golden_mismatch_none", lambda v: v["models"][0].update(golden_input=[], golden_answer=[]))
    bad("golden_mismatch_lengths", lambda v: v["models"][0]["golden_input"].pop())
    bad("golden_mismatch_bytes_of_last", lambda v: _raise(v["models"][3]["golden_answer"], 1), "ok_direct_four_models")
    return out


def _raise(answers: list[int], by: int) -> None:
    answers[0] += by


def _more(b: Bundle) -> str:
    """What `bundles2.txt` says of a good bundle beyond `bundles.txt`."""
    models = ",".join(f"{m.role}:{m.kind.name}" for m in b.models) or "-"
    values = ",".join(map(str, b.law.values)) or "-"
    return f" {b.of_policy} {b.law.name} {b.law.subject} {b.law.action} {values} {models}"


def outputs() -> dict[str, bytes]:
    """Files below `golden/`."""
    all_ = cases()
    lines = [line(*one) + (_more(one[2]) if isinstance(one[2], Bundle) else "") for one in judged(all_)]
    return {"bundles2.bin": container([(0, data) for _, data, _ in all_]), "bundles2.txt": text(lines)}
