"""Bundles: round trip, refusals and their order, and bytes that a stock Protobuf runtime reads."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf import descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st
from oal_schema import bundle_wire
from oal_schema import golden_bundles as golden
from oal_schema import golden_bundles2 as golden2
from oal_schema.bundle import bundle_hash, bundle_id, decode, encode, models_of, open_signed, sign
from oal_schema.bundle_law import FAIR_WINDOW, Law
from oal_schema.bundle_models import Model
from oal_schema.bundle_wire import BUNDLE, SIGNED, parse, write
from oal_schema.model import descriptors
from oal_schema.program_check import what_is_wrong
from oal_schema.settings import settings as contract_settings
from oal_schema.tree import MISSING, BundleError, Tree

TRUSTED = golden.TRUSTED
CASES, CASES2 = golden.cases(), golden2.cases()
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


def stock_messages():
    fds = descriptors()
    pool = descriptor_pool.DescriptorPool()
    for f in fds.file:
        pool.Add(f)
    return pool, message_factory.GetMessageClassesForFiles([f.name for f in fds.file], pool)


def test_field_tables_are_those_of_the_proto():
    pool, _ = stock_messages()
    kinds = {13: "u32", 14: "u32", 17: "s32", 18: "s64", 6: "fixed64", 12: "bytes", 9: "text"}
    names = {
        "SignedBundle": SIGNED,
        "Bundle": BUNDLE,
        "FeatureProgram": bundle_wire.PROGRAM,
        "Tree": bundle_wire.TREE,
        "WindowModel": bundle_wire.WINDOW,
        "Policy": bundle_wire.POLICY,
        "GoldenVectors": bundle_wire.GOLDEN,
        "Model": bundle_wire.MODEL,
        "Law": bundle_wire.LAW,
    }
    for name, spec in names.items():
        got = {
            f.number: (f.name, names[f.message_type.name] if f.type == 11 else kinds[f.type], f.label == 3)
            for f in pool.FindMessageTypeByName(f"oal.{name}").fields
        }
        assert got == spec, name


@pytest.mark.parametrize("name", [n for n, _, _ in CASES if n.startswith("ok_")])
def test_a_stock_protobuf_runtime_reads_good_bundles(name):
    message = stock_messages()[1]["oal.SignedBundle"]
    bundle = stock_messages()[1]["oal.Bundle"]
    data = {n: d for n, d, _ in CASES}[name]
    payload = message.FromString(data).payload
    stock, ours = bundle.FromString(payload), decode(payload)
    assert (
        stock.serial == ours.serial and stock.target == ours.target and len(stock.rollback_to) == len(ours.rollback_to)
    )
    assert [f - 1 for f in stock.tree.feature] == list(ours.tree.feature)
    assert list(stock.tree.threshold) == list(ours.tree.threshold[ours.tree.feature >= 0])
    assert list(stock.golden.features) == list(ours.golden.ravel())
    if name not in ("ok_unpacked", "ok_policy_taken_out"):  # fields in another order; fields that it does not know
        assert stock.SerializeToString(deterministic=True) == payload


@pytest.mark.parametrize("name", [n for n, _, _ in CASES2 if n.startswith("ok_")])
def test_a_stock_protobuf_runtime_reads_models_and_law(name):
    message, bundle = (stock_messages()[1][f"oal.{n}"] for n in ("SignedBundle", "Bundle"))
    payload = message.FromString({n: d for n, d, _ in CASES2}[name]).payload
    stock, ours = bundle.FromString(payload), decode(payload)
    assert [(m.role, m.kind) for m in stock.models] == [(m.role, m.kind.name) for m in ours.models]
    assert [list(m.golden_input) for m in stock.models] == [list(m.golden.ravel()) for m in ours.models]
    assert [list(m.golden_answer) for m in stock.models] == [list(m.table.answer(m.golden)) for m in ours.models]
    assert (stock.law.name, stock.law.subject, stock.law.action, tuple(stock.law.values)) == (
        ours.law.name,
        ours.law.subject,
        ours.law.action,
        ours.law.values,
    )
    assert stock.of_policy == ours.of_policy and stock.format == 2
    if name != "ok_shuffled":
        assert stock.SerializeToString(deterministic=True) == payload


DIRECT = Law("direct", values=(0, 0, 60_000, 30_000))
TREE_MODEL, WINDOW = Model("class", golden.random_tree(1, 31)), golden.random_window(6, 20, 15)


@pytest.mark.parametrize(
    "number, change",
    [
        (1, {}),
        (1, {"window": WINDOW}),
        (1, {"of_policy": "rwnd-fair", "law": FAIR_WINDOW}),
        (2, {"of_policy": "example"}),
        (2, {"law": DIRECT}),
        (2, {"models": [TREE_MODEL, Model("extra", golden.random_tree(2, 3))]}),
        (2, {"models": models_of(TREE_MODEL.table, WINDOW)[::-1]}),
        (2, {"models": [TREE_MODEL, Model("mean", WINDOW)]}),
    ],
)
def test_format_1_is_written_wherever_it_can_say_it(number, change):
    made = golden.bundle(**change)
    payload = encode(made)
    back = decode(payload)
    assert made.format == back.format == parse(BUNDLE, payload)["format"] == number
    assert (back.law, back.of_policy, [m.role for m in back.models]) == (
        made.law,
        made.of_policy,
        [m.role for m in made.models],
    )
    assert encode(back) == payload


def test_both_formats_say_the_same_of_rwnd_fair():
    one = decode(parse(SIGNED, {n: d for n, d, _ in CASES}["ok_window"])["payload"])
    two = decode(parse(SIGNED, {n: d for n, d, _ in CASES2}["ok_fair_said_in_2"])["payload"])
    assert (one.law, one.of_policy, one.policy) == (two.law, two.of_policy, two.policy)
    assert [(m.role, m.golden.tolist()) for m in one.models] == [(m.role, m.golden.tolist()) for m in two.models]
    assert encode(two) == encode(one), "written again it is of format 1"


def test_stock_bytes_are_ours():
    """Bytes that a stock runtime writes from our values decode to the same bundle."""
    payload = encode(golden.bundle(window=golden.random_window(1, 3, 7)))
    assert encode(decode(payload)) == payload == write(BUNDLE, parse(BUNDLE, payload))


@st.composite
def trees(draw):
    """Random trees over a few features with thresholds anywhere in 64 bits."""
    import random

    n_features = draw(st.integers(1, 45))
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    nodes = golden.random_nodes(
        rng,
        1 + 2 * draw(st.integers(0, 60)),
        n_features,
        lambda r: r.choice([r.randint(-(1 << 63), (1 << 63) - 1), r.randint(-99, 99)]),
    )
    classes = np.array([rng.randrange(4) for _ in nodes[0]], np.uint8)
    permille = np.array([[rng.randrange(334) for _ in range(3)] for _ in nodes[0]], np.uint16)
    return Tree(*nodes, classes, permille, golden.feature_hash())


def plain_walk(tree: Tree, x) -> int:
    """The README's words, one node at a time."""
    i = 0
    while tree.feature[i] >= 0:
        v = int(x[tree.feature[i]])
        left = not tree.missing_right[i] if v == MISSING else v <= int(tree.threshold[i])
        i = i + 1 if left else int(tree.right[i])
    return i


@settings(max_examples=150, deadline=None)
@given(
    trees(),
    st.lists(
        st.lists(st.one_of(INT64, st.just(MISSING), st.integers(-100, 100)), min_size=45, max_size=45),
        min_size=1,
        max_size=8,
    ),
)
def test_trees_survive_the_round_trip_and_answer_alike(tree, rows):
    x = np.array(rows, np.int64)
    back = decode(encode(golden.bundle(tree=tree, golden=x)))
    assert [plain_walk(tree, r) for r in rows] == list(tree.apply(x)) == list(back.tree.apply(x))
    inner, leaf = np.flatnonzero(tree.feature >= 0), np.flatnonzero(tree.feature < 0)
    assert (back.tree.threshold[inner] == tree.threshold[inner]).all() and (
        back.tree.leaf_permille[leaf] == tree.leaf_permille[leaf]
    ).all()
    assert (back.tree.predict(x) == tree.predict(x)).all()
    assert (back.tree.congested_permille(x) == tree.congested_permille(x)).all()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_flipped_bits_are_refused_or_decode(data):
    name = data.draw(
        st.sampled_from(
            [
                (CASES, "ok_tree"),
                (CASES, "ok_window"),
                (CASES, "ok_unpacked"),
                (CASES2, "ok_direct"),
                (CASES2, "ok_direct_four_models"),
                (CASES2, "ok_shuffled"),
            ]
        )
    )
    payload = bytearray(parse(SIGNED, {n: d for n, d, _ in name[0]}[name[1]])["payload"])
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        decode(bytes(payload))
    except BundleError as e:
        assert e.reason in contract_settings()["bundle_reasons"]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_garbage_is_refused_and_nothing_else(data):
    with pytest.raises(BundleError):
        open_signed(data, TRUSTED, "ap-1", "lab")
    with pytest.raises(BundleError):
        decode(data)


@pytest.mark.parametrize(
    "cases, name, data, in_force",
    [(cases, *c) for cases in (CASES, CASES2) for c in cases],
    ids=[c[0] for c in CASES] + [f"2 {c[0]}" for c in CASES2],
)
def test_golden_bundle(cases, name, data, in_force):
    force = open_signed({n: d for n, d, _ in cases}[in_force], TRUSTED, golden.AP_ID, golden.SITE) if in_force else None
    if golden.expected(name) == "ok":
        bundle, digest = open_signed(data, TRUSTED, golden.AP_ID, golden.SITE, force)
        assert digest == bundle_hash(parse(SIGNED, data)["payload"]) and 0 < bundle_id(digest) < 1 << 63
    else:
        with pytest.raises(BundleError) as e:
            open_signed(data, TRUSTED, golden.AP_ID, golden.SITE, force)
        assert e.value.reason == golden.expected(name), e.value.detail


def test_every_reason_has_a_golden_bundle():
    assert set(contract_settings()["bundle_reasons"]) - {golden.expected(n) for n, _, _ in CASES} == {
        "none",
        "oversized",
        "no_memory",
        "not_permitted",  # in keys.bin
    }


def test_oversized():
    limit = contract_settings()["max_bundle_bytes"]
    for n, reason in ((limit + 1, "oversized"), (limit, "malformed")):
        with pytest.raises(BundleError) as e:
            open_signed(bytes(n), TRUSTED, "ap-1", "lab")
        assert e.value.reason == reason


def test_a_255_node_bundle_is_small_and_has_vectors_enough():
    data = sign(encode(golden.bundle(tree=golden.random_tree(9, 255))), golden.KEY)
    assert len(data) <= 4096
    bundle, _ = open_signed(data, TRUSTED, "ap-1", "lab")
    assert len(bundle.golden) >= 4 and len(np.unique(bundle.tree.apply(bundle.golden))) >= 4


def test_golden_rows_come_from_the_rows_given():
    x = np.arange(45 * 50, dtype=np.int64).reshape(50, 45)
    bundle = decode(encode(golden.bundle(golden=x)))
    assert all((row == x).all(axis=1).any() for row in bundle.golden)


@pytest.mark.parametrize(
    "change",
    [
        {"source": "nobody"},
        {"version": -1},
        {"golden": np.zeros((3, 4), np.int64)},
        {"golden": np.zeros((0, 45), np.int64)},
    ],
)
def test_what_cannot_be_written_is_an_error(change):
    with pytest.raises(ValueError):
        encode(golden.bundle(**change))


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"serial": 0}, "malformed"),
        ({"target": ""}, "malformed"),
        ({"rollback_to": [b"x"]}, "malformed"),
        ({"program": []}, "bad_program"),
        ({"tree": golden.random_tree(1, 31, hash_=7)}, "feature_mismatch"),
        ({"of_policy": "Example"}, "malformed"),
        ({"models": []}, "unsupported_format"),
        ({"law": Law("direct")}, "unsupported_format"),
        ({"law": Law("mark", "ap", "mark")}, "unsupported_format"),
    ],
)
def test_what_no_ap_would_take_is_not_written(change, reason):
    with pytest.raises(BundleError) as e:
        encode(golden.bundle(**change))
    assert e.value.reason == reason


def test_floats_are_refused_by_the_evaluator():
    with pytest.raises(TypeError, match="int64"):
        golden.random_tree(1, 3).apply(np.zeros((2, 45)))


def test_signing_refuses_what_is_too_large():
    with pytest.raises(BundleError) as e:
        sign(bytes(contract_settings()["max_bundle_bytes"]), Ed25519PrivateKey.generate())
    assert e.value.reason == "oversized"


def test_the_committed_programs_are_valid():
    words, interval = golden.program()
    assert what_is_wrong(words, interval) is None
