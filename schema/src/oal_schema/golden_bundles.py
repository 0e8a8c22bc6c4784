"""Golden bundles (golden/README.md): good ones, and one or more for every reason to refuse one."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from . import golden_policies, wire
from .bundle import Bundle, bundle_hash, encode, models_of, open_signed, sign
from .bundle_wire import BUNDLE, SIGNED, TREE, parse, write
from .golden_file import container
from .grant import ROLES, Grant
from .keys import TrustedKey, key_id, public_line
from .model import ROOT
from .nodes import BundleError
from .policy import PREDICT_ONLY
from .program_file import from_bytes, program_hash
from .settings import settings
from .tree import Tree, WindowModel

AP_ID, SITE = "ap-1", "lab"
SERIAL = 1_800_000_000_000_000
#: keys for these files only: their private halves stand here
KEY, OTHER_KEY, STRANGER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2, 3))

#: of those keys, wherever what a bundle says is the question and not who may say it; no line of a file can say this
ANYTHING = Grant("any", sources=frozenset().union(*ROLES.values()))
TRUSTED = {
    key_id(k): TrustedKey(k.public_key(), name, ANYTHING) for k, name in ((KEY, "test-1"), (OTHER_KEY, "test-2"))
}


@lru_cache(maxsize=1)
def program() -> tuple[list[tuple[int, ...]], int]:
    """(words, decision interval) of the congestion program when these files were first written: its first 45."""
    return (whole := from_bytes((ROOT / "generated" / "features" / "congestion.oalf").read_bytes()))[0][:45], whole[1]


def feature_hash() -> int:
    return int.from_bytes(program_hash(*program())[:8], "big")


def random_nodes(
    rng: random.Random, n_nodes: int, n_inputs: int, threshold: Callable[[random.Random], int]
) -> tuple[np.ndarray, ...]:
    """(feature, threshold, right, missing_right) of a random tree; `n_nodes` is odd."""
    columns: list[list[int]] = [[0] * n_nodes for _ in range(4)]
    todo = [(0, n_nodes)]
    while todo:
        at, size = todo.pop()
        if size == 1:
            columns[0][at] = -1
            continue
        left = 1 + 2 * rng.randint(0, (size - 3) // 2)
        columns[0][at], columns[1][at], columns[2][at], columns[3][at] = (
            rng.randrange(n_inputs),
            threshold(rng),
            at + 1 + left,
            rng.random() < 0.2,
        )
        todo += [(at + 1, left), (at + 1 + left, size - 1 - left)]
    return tuple(np.array(c, t) for c, t in zip(columns, (np.int32, np.int64, np.int32, bool)))


def random_tree(seed: int, n_nodes: int, hash_: int | None = None, span: int = 60_000, n_features: int = 0) -> Tree:
    """A tree over the congestion program, or over `n_features` of another, with thresholds in [-span/10, span]."""
    rng = random.Random(seed)
    nodes = random_nodes(rng, n_nodes, n_features or len(program()[0]), lambda r: r.randint(-span // 10, span))
    permille = np.zeros((n_nodes, 3), np.uint16)
    classes = np.zeros(n_nodes, np.uint8)
    for i in np.flatnonzero(nodes[0] < 0):
        cuts = sorted(rng.randint(0, 1000) for _ in range(3))
        permille[i] = cuts[1] - cuts[0], cuts[2] - cuts[1], 1000 - cuts[2]
        classes[i] = rng.randrange(4)
    return Tree(*nodes, classes, permille, feature_hash() if hash_ is None else hash_)


def random_window(seed: int, n_trees: int, n_nodes: int, hash_: int | None = None, n_features: int = 0) -> WindowModel:
    """A window model over features, of the congestion program or `n_features` of another, and columns of the flow
    table.
    """
    rng = random.Random(seed)
    features = [f for f in (0, 3, 7, 44) if f < (n_features or len(program()[0]))]
    inputs = np.array([*features, -9, -10, -12], np.int32)
    trees = []
    for _ in range(n_trees):
        nodes = random_nodes(rng, n_nodes, len(inputs), lambda r: r.randint(0, 100_000))
        value = np.array([rng.randint(-1 << 24, 1 << 24) if f < 0 else 0 for f in nodes[0]], np.int64)
        trees.append((*nodes, value))
    return WindowModel(inputs, 30_000 << 8, 8, 1460, 1 << 20, trees, feature_hash() if hash_ is None else hash_)


def bundle(
    tree: Tree | None = None, window: WindowModel | None = None, golden: np.ndarray | None = None, **changes
) -> Bundle:
    """A good bundle for the fleet: a tree of 31 nodes, unless others are given."""
    words, interval = program()
    return Bundle(
        **{
            "serial": SERIAL,
            "target": "fleet",
            "source": "registry",
            "model": "congestion-tree",
            "version": 3,
            "rollback_to": [],
            "program": words,
            "decision_interval_us": interval,
            "models": models_of(tree or random_tree(1, 31), window, golden),
        }
        | changes
    )


def _unpacked(payload: bytes) -> bytes:
    """The same bundle as another writer might put it: fields in another order, lists of the tree not packed, unknown
    fields.
    """
    values = parse(BUNDLE, payload)
    tree = bytearray()
    for number, (name, kind, repeated) in reversed(sorted(TREE.items())):
        for v in values["tree"][name] if repeated else []:
            wire.put_varint(tree, number << 3)
            wire.put_varint(tree, wire.zigzag(v) if kind == "s64" else v)
    wire.put_fixed64(tree, 1, values["tree"]["feature_hash"])
    wire.put_bytes(tree, 99, b"from the future")
    out = bytearray()
    wire.put_bytes(out, 9, bytes(tree))
    wire.put_uint(out, 77, 5)
    return bytes(out) + write(BUNDLE, values | {"tree": None})


@lru_cache(maxsize=1)
def cases() -> list[tuple[str, bytes, str | None]]:
    """(name, signed bundle, name of the bundle in force or None). The first word of a name is what must come out: `ok`
    or a reason.
    """
    out: list[tuple[str, bytes, str | None]] = []
    payloads: dict[str, bytes] = {}

    def good(name: str, b: Bundle, in_force: str | None = None, key: Ed25519PrivateKey = KEY) -> None:
        payloads[name] = encode(b)
        out.append((name, sign(payloads[name], key), in_force))

    def bad(name: str, change: Callable[[dict], None], base: str = "ok_tree", in_force: str | None = None) -> None:
        values = deepcopy(parse(BUNDLE, payloads[base]))
        change(values)
        out.append((name, sign(write(BUNDLE, values), KEY), in_force))

    def raw(name: str, data: bytes) -> None:
        out.append((name, data, None))

    good("ok_tree", bundle())
    good("ok_one_leaf", bundle(tree=random_tree(2, 1)))
    good("ok_255_nodes", bundle(tree=random_tree(3, 255), serial=SERIAL + 1))
    good("ok_4095_nodes", bundle(tree=random_tree(4, 4095, span=2000), source="online", version=7))
    good("ok_extreme_thresholds", bundle(tree=random_tree(5, 63, span=(1 << 63) - 1)))
    good("ok_window", bundle(window=random_window(6, 20, 15)))
    good("ok_site", bundle(target=f"site/{SITE}"))
    good("ok_ap", bundle(target=f"ap/{AP_ID}", source="online"))
    for name, policy in golden_policies.good():
        good(f"ok_policy_{name}", bundle(policy=policy))
    raw("ok_policy_taken_out", sign(golden_policies.with_taken_out(payloads["ok_policy_most"]), KEY))
    good("ok_other_key", bundle(model=""), key=OTHER_KEY)
    raw("ok_unpacked", sign(_unpacked(payloads["ok_window"]), KEY))
    older, newer = bundle(serial=SERIAL - 9, version=2), bundle(serial=SERIAL + 9, version=4)
    good("ok_older", older)
    newer.rollback_to = [bundle_hash(payloads["ok_tree"]), bundle_hash(payloads["ok_older"])]
    good("ok_newer", newer, "ok_tree")
    good("ok_rollback", older, "ok_newer")
    good("ok_in_force_itself", bundle(), "ok_tree")

    signed = out[0][1]
    envelope = parse(SIGNED, signed)
    raw("malformed_truncated", signed[:-1])
    raw("malformed_half", signed[: len(signed) // 2])
    raw("malformed_empty", b"")
    raw("malformed_wire_type", b"\x08\x01" + signed)
    raw("malformed_group", b"\x0b" + signed)
    raw("malformed_long_varint", b"\xff" * 11)
    raw("malformed_no_payload", write(SIGNED, envelope | {"payload": None}))
    raw("malformed_two_payloads", signed + write(SIGNED, {"payload": envelope["payload"]}))
    raw("unsigned", write(SIGNED, envelope | {"signature": None}))
    raw("unknown_key", sign(envelope["payload"], STRANGER))
    raw("unknown_key_none_named", write(SIGNED, envelope | {"key_id": 0}))
    for at in (0, len(envelope["payload"]) // 2, len(envelope["payload"]) - 1):
        flipped = bytearray(envelope["payload"])
        flipped[at] ^= 1
        raw(f"bad_signature_payload_{at}", write(SIGNED, envelope | {"payload": bytes(flipped)}))
    raw("bad_signature_short", write(SIGNED, envelope | {"signature": envelope["signature"][:63]}))
    raw("bad_signature_of_another_key", write(SIGNED, envelope | {"key_id": key_id(OTHER_KEY)}))
    raw("bad_signature_without_domain", write(SIGNED, envelope | {"signature": KEY.sign(envelope["payload"])}))

    raw("malformed_payload_truncated", sign(envelope["payload"][:-1], KEY))
    raw(
        "malformed_payload_two_trees",
        sign(envelope["payload"] + write(BUNDLE, {"tree": parse(BUNDLE, envelope["payload"])["tree"]}), KEY),
    )
    raw("malformed_payload_two_serials", sign(envelope["payload"] + b"\x10\x02", KEY))
    raw("malformed_33_bits", sign(envelope["payload"].replace(b"\x30\x03", b"\x30\x83\x80\x80\x80\x10", 1), KEY))
    raw("malformed_fixed_serial", sign(b"\x11" + bytes(8), KEY))
    bad("malformed_serial", lambda v: v.update(serial=-1))
    bad("malformed_target", lambda v: v.update(target=""))
    bad("malformed_long_target", lambda v: v.update(target="ap/" + "x" * 200))
    bad("malformed_model", lambda v: v.update(model="a\nb"))
    bad("malformed_rollback", lambda v: v.update(rollback_to=[bytes(31)]))
    bad("malformed_five_rollbacks", lambda v: v.update(rollback_to=[bytes(32)] * 5))
    bad("unsupported_format", lambda v: v.update(format=2))
    bad("unsupported_format_source", lambda v: v.update(source=3))
    bad("unsupported_format_no_program", lambda v: v.update(program=None))
    bad("unsupported_format_no_tree", lambda v: v.update(tree=None))
    raw("unsupported_format_serial_only", sign(b"\x10\x02\x1a\x05fleet", KEY))
    bad("wrong_target_ap", lambda v: v.update(target="ap/ap-2"))
    bad("wrong_target_prefix", lambda v: v.update(target="ap/ap-"))
    bad("wrong_target_site", lambda v: v.update(target="site/ap-1"))
    bad("wrong_target_other", lambda v: v.update(target="fleet2"))
    bad("replayed_older", lambda v: None, "ok_older", "ok_tree")
    bad("replayed_equal_serial", lambda v: v.update(version=9), in_force="ok_tree")

    bad("bad_program_operator", lambda v: v["program"]["op"].__setitem__(3, 99))
    bad("bad_program_table", lambda v: v["program"]["table"].__setitem__(0, 55))
    bad("bad_program_column", lambda v: v["program"]["column"].__setitem__(0, 0))
    bad("bad_program_filter", lambda v: v["program"]["filter_column"].__setitem__(0, 9))
    bad("bad_program_later_operand", lambda v: v["program"].update(_later(v["program"])))
    bad("bad_program_window", lambda v: v["program"]["window"].__setitem__(0, 65))
    bad("bad_program_divisor", lambda v: v["program"]["b"].__setitem__(0, 0))
    bad("bad_program_lengths", lambda v: v["program"]["group"].pop())
    bad("bad_program_bounds", lambda v: v["program"]["bound"].append(1))
    bad("bad_program_given", lambda v: v["program"]["given"].__setitem__(0, 8))
    bad("bad_program_interval", lambda v: v["program"].update(decision_interval_us=999))
    bad("bad_program_empty", lambda v: v.update(program={}))
    bad("bad_program_129_features", lambda v: v["program"].update(
        {k: (x * 3)[:129] for k, x in v["program"].items() if isinstance(x, list) and k != "bound"}))

    def tree(name: str, change: Callable[[dict], None]) -> None:
        bad(f"bad_tree_{name}", lambda v: change(v["tree"]))

    tree("cycle", lambda t: t["right"].__setitem__(-1, 0))
    tree("right_is_left", lambda t: t["right"].__setitem__(0, 1))
    tree("two_parents", lambda t: t["right"].__setitem__(0, 30 if t["right"][0] != 30 else 28))
    tree("child_outside", lambda t: t["right"].__setitem__(0, 31))
    tree("child_far_outside", lambda t: t["right"].__setitem__(0, (1 << 32) - 1))
    tree("feature", lambda t: t["feature"].__setitem__(0, 46))
    tree("no_left_child", lambda t: (t["feature"].append(1), t["threshold"].append(1), t["right"].append(31)))
    tree(
        "unreachable",
        lambda t: (t["feature"].append(0), t["leaf_class"].append(0), t["leaf_permille"].extend([0, 0, 0])),
    )
    tree("class", lambda t: t["leaf_class"].__setitem__(2, 4))
    tree("permille", lambda t: t["leaf_permille"].__setitem__(slice(0, 3), [400, 400, 201]))
    tree("permille_wraps", lambda t: t["leaf_permille"].__setitem__(slice(0, 3), [(1 << 32) - 1, 1, 0]))
    tree("thresholds", lambda t: t["threshold"].pop())
    tree("rights", lambda t: t["right"].append(3))
    tree("classes", lambda t: t["leaf_class"].pop())
    tree("permilles", lambda t: t["leaf_permille"].append(0))
    tree("missing_right_leaf", lambda t: t.update(missing_right=[t["feature"].index(0)]))
    tree("missing_right_order", lambda t: t.update(missing_right=[0, 0]))
    tree("missing_right_outside", lambda t: t.update(missing_right=[31]))
    tree("empty", lambda t: [t.update({k: []}) for k in t if k != "feature_hash"])
    bad("bad_tree_4097_nodes", lambda v: v.update(tree=_chain(4097)))

    def window(name: str, change: Callable[[dict], None]) -> None:
        bad(f"bad_window_model_{name}", lambda v: change(v["window"]), "ok_window")

    window("input", lambda w: w["input"].__setitem__(0, 45))
    window("key_column", lambda w: w["input"].__setitem__(6, -1))
    window("column", lambda w: w["input"].__setitem__(6, -99))
    window("no_input", lambda w: w.update(input=[]))
    window("no_tree", lambda w: [w.update({k: []}) for k in w if isinstance(w[k], list) and k != "input"])
    window("empty_tree", lambda w: w["tree_nodes"].append(0))
    window("tree_nodes", lambda w: w["tree_nodes"].__setitem__(0, 13))
    window("tree_nodes_wrap", lambda w: w["tree_nodes"].extend([(1 << 32) - 15, 15]))
    window("crosses_trees", lambda w: w["right"].__setitem__(0, 15))
    window("feature", lambda w: w["feature"].__setitem__(0, 8))
    window("missing_right", lambda w: w["missing_right"].append(1 << 30))
    window("values", lambda w: w["leaf_value"].pop())
    window("leaf_value", lambda w: w["leaf_value"].__setitem__(0, 1 << 40))
    window("base", lambda w: w.update(base=-(1 << 52)))
    window("shift", lambda w: w.update(shift=41))
    window("bounds", lambda w: w.update(lo=2, hi=1))
    window(
        "257_trees",
        lambda w: w.update(
            tree_nodes=[1] * 257, feature=[0] * 257, threshold=[], right=[], missing_right=[], leaf_value=[0] * 257
        ),
    )

    for name, change in golden_policies.bad():
        bad(f"bad_policy_{name}", lambda v, change=change: change(v["policy"]), "ok_policy_enforce")
    bad("feature_mismatch_tree", lambda v: v["tree"].update(feature_hash=feature_hash() ^ 1))
    bad("feature_mismatch_window", lambda v: v["window"].update(feature_hash=0), "ok_window")
    bad("feature_mismatch_program", lambda v: v["program"].update(decision_interval_us=200_000))
    bad("golden_mismatch_leaf", lambda v: v["golden"]["leaf"].__setitem__(1, v["golden"]["leaf"][1] + 1))
    bad("golden_mismatch_none", lambda v: v.update(golden=None))
    bad("golden_mismatch_empty", lambda v: v.update(golden={}))
    bad("golden_mismatch_lengths", lambda v: v["golden"]["features"].pop())
    bad("golden_mismatch_one_more", lambda v: v["golden"]["leaf"].append(0))
    bad("golden_mismatch_window_bytes", lambda v: v["golden"]["window_bytes"].__setitem__(0, 7), "ok_window")
    bad("golden_mismatch_window_none", lambda v: v["golden"].update(window_input=[], window_bytes=[]), "ok_window")
    bad("golden_mismatch_no_window", lambda v: v["golden"].update(window_input=[1], window_bytes=[1]))
    bad("malformed_policy_name", lambda v: v["policy"].update(name="a\nb"), "ok_policy_enforce")
    bad("bad_policy_before_feature_mismatch", lambda v: (v["policy"].update(mode=9), v["tree"].update(feature_hash=0)))
    bad("bad_tree_before_policy", lambda v: (v["policy"].update(mode=9), v["tree"]["right"].pop()))
    bad(
        "wrong_target_before_replayed",
        lambda v: (v.update(target="ap/ap-2"), v["program"]["op"].pop()),
        "ok_older",
        "ok_tree",
    )
    return out


def _later(p: dict) -> dict:
    """Columns of a program whose first derived feature reads a later one."""
    at = next(i for i, op in enumerate(p["op"]) if op >= 16)
    return {"a": [len(p["op"]) - 1 if i == at else a for i, a in enumerate(p["a"])]}


def _chain(n: int) -> dict:
    """A tree whose left children are all leaves."""
    inner = n // 2
    return {
        "feature_hash": feature_hash(),
        "feature": [1, 0] * inner + [0],
        "threshold": [0] * inner,
        "right": [2 * i + 2 for i in range(inner)],
        "missing_right": [],
        "leaf_class": [0] * (inner + 1),
        "leaf_permille": [0] * 3 * (inner + 1),
    }


def expected(name: str) -> str:
    """What must come out for a case: `ok` or the reason that its name begins with."""
    if name.startswith("ok_"):
        return "ok"
    return next(r for r in sorted(settings()["bundle_reasons"], key=len, reverse=True) if name.startswith(r))


def judged(all_: list[tuple[str, bytes, str | None]]) -> list[tuple[str, str, Bundle | BundleError, bytes]]:
    """(name, name of the one in force or "-", what the reference gives: the bundle or why not, hash) of cases.

    AssertionError when it is not what a case's name says.
    """
    by_name = {name: data for name, data, _ in all_}
    out = []
    for name, data, in_force in all_:
        force = open_signed(by_name[in_force], TRUSTED, AP_ID, SITE) if in_force else None
        try:
            got, digest = open_signed(data, TRUSTED, AP_ID, SITE, force)
        except BundleError as e:
            got, digest = e, b""
        reason = got.reason if isinstance(got, BundleError) else "ok"
        assert reason == expected(name), f"{name}: {reason}"
        out.append((name, in_force or "-", got, digest))
    return out


def line(name: str, in_force: str, got: Bundle | BundleError, digest: bytes) -> str:
    """What `bundles.txt` says of a case."""
    if isinstance(got, BundleError):
        return f"{name} {in_force} {got.reason}"
    trees = len(got.window.trees) if got.window else 0
    nodes = got.tree.n_nodes if got.tree else 0
    return f"{name} {in_force} ok {digest.hex()} {got.serial} {nodes} {trees}"


def outputs() -> dict[str, bytes]:
    """Files below `golden/`."""
    all_ = cases()
    lines, policies = [], []
    for name, in_force, got, digest in judged(all_):
        lines.append(line(name, in_force, got, digest))
        if isinstance(got, BundleError) and got.reason == "bad_policy":
            policies.append(f"{name} {got.detail}")
        elif name.startswith("ok_policy_"):
            policies.append(f"{name} {golden_policies.line(got.policy)}")
    keys = [
        "# Test keys; their private halves are 32 times 01 and 32 times 02.",
        public_line(KEY, "test-1"),
        public_line(OTHER_KEY, "test-2"),
    ]
    assert bundle().policy == PREDICT_ONLY
    return {
        "bundles.bin": container([(0, data) for _, data, _ in all_]),
        "bundles.txt": text(lines),
        "policies.txt": text(policies),
        "bundles.keys": text(keys),
    }


def text(lines: list[str]) -> bytes:
    """Lines as a file."""
    return ("\n".join(lines) + "\n").encode()
