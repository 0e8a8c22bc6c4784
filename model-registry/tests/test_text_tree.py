"""Five-field text records: what they mean, that they come back as they went, and what is refused at which place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oal_registry import json_tree, programs, text_tree
from oal_schema.tree import Tree

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = programs.of_name("congestion")
N = len(PROGRAM.features)
GOOD = "0,0,backlog_bytes,1000,0|0,1,leaf,0,0|0,2,txq_drops,-4,0|2,3,leaf,0,2|2,4,leaf,0,3"


def loads(text: str) -> Tree:
    tree = text_tree.loads(text, PROGRAM.features, PROGRAM.feature_hash)
    tree.check(len(PROGRAM.features))
    return tree


def row(**values: int) -> np.ndarray:
    x = np.zeros((1, len(PROGRAM.features)), np.int64)
    for name, value in values.items():
        x[0, PROGRAM.features.index(name)] = value
    return x


def test_left_is_at_most_the_threshold():
    tree = loads(GOOD)
    assert tree.predict(row(backlog_bytes=1000)) == 0
    assert tree.predict(row(backlog_bytes=1001, txq_drops=-4)) == 2
    assert tree.predict(row(backlog_bytes=1001, txq_drops=-3)) == 3
    assert tree.leaf_permille.tolist() == [[0, 0, 0]] * 3 + [[0, 1000, 0], [0, 0, 1000]]


def test_export_is_what_was_imported_and_numbers_count_features_from_1():
    assert text_tree.dumps(loads(GOOD), PROGRAM.features) == GOOD + "\n"
    numeric = text_tree.dumps(loads(GOOD), PROGRAM.features, numeric=True)
    assert numeric == "0,0,1,1000,0|0,1,0,0,0|0,2,6,-4,0|2,3,0,0,2|2,4,0,0,3\n"
    assert text_tree.dumps(loads(numeric), PROGRAM.features) == GOOD + "\n"


def test_lines_blanks_and_any_numbering_are_taken():
    assert (
        text_tree.dumps(
            loads("0,0, backlog_bytes ,1000,0|\n\n 0,17,leaf,0.5,0 |0,5,txq_drops,-4,1\n5,99,leaf,0,2\n|5,3,leaf,0,3|"),
            PROGRAM.features,
        )
        == GOOD + "\n"
    )


@pytest.mark.parametrize(
    "text, floor",
    [
        ("3.7", 3),
        ("-3.2", -4),
        ("1e3", 1000),
        ("0.0", 0),
        ("-0.5", -1),
        ("9007199254740993.5", 9007199254740993),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", 1 - 2**63),
    ],
)
def test_a_fractional_threshold_is_floored_which_says_the_same_of_every_integer(text, floor):
    tree = loads(f"0,0,backlog_bytes,{text},0|0,1,leaf,0,0|0,2,leaf,0,3")
    assert tree.threshold[0] == floor
    for x in range(max(floor - 2, 1 - 2**63), min(floor + 3, 2**63)):
        assert tree.predict(row(backlog_bytes=x)) == (0 if x <= floor else 3)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "there is no record"),
        ("hello", "line 1, record 1: has 1 fields"),
        ("0,0,leaf,0,0|0,1,leaf,0,0", "line 1, record 2: is a child of node 0, which is a leaf"),
        ("0,0,backlog_bytes,1,0|0,1,leaf,0,0", "record 1: node 0 has 1 of its two children"),
        ("0,0,backlog_bytes,1,0", "record 1: node 0 has 0 of its two children"),
        ("0,0,backlog_bytes,1,0|0,1,leaf,0,0|0,2,leaf,0,0|0,3,leaf,0,0", "record 4: is a third child of node 0"),
        ("0,0,backlog_bytes,1,0|0,1,leaf,0,0|0,1,leaf,0,0", "record 3: node 1 is already at line 1, record 2"),
        (
            "0,0,backlog_bytes,1,0|0,1,leaf,0,0\n0,0,leaf,0,0",
            "line 2, record 3: is a second root; the first is at line 1, record 1",
        ),
        ("0,0,backlog_bytes,1,0|0,1,leaf,0,0|7,7,leaf,0,0", "record 3: node 7 is its own father"),
        (
            "0,0,backlog_bytes,1,0|0,1,leaf,0,0|0,2,leaf,0,0|4,3,backlog_pkts,1,0|3,4,backlog_pkts,1,0",
            "record 4: cycle: node 3",
        ),
        ("0,0,backlog_bytes,1,0|0,1,leaf,0,0|8,2,leaf,0,0", "record 3: its father 8 is not there"),
        ("0,1,leaf,0,0", "record 1: the first record must be the root"),
        ("0,1,leaf,0,0|0,0,backlog_bytes,1,0|0,2,leaf,0,0", "record 2: the root must be the first record"),
        ("0,0,backlog_bytes,NaN,0|0,1,leaf,0,0|0,2,leaf,0,0", "record 1: threshold `NaN` is not a finite number"),
        ("0,0,backlog_bytes,inf,0|0,1,leaf,0,0|0,2,leaf,0,0", "record 1: threshold `inf` is not a finite number"),
        ("0,0,backlog_bytes,1e300,0|0,1,leaf,0,0|0,2,leaf,0,0", "record 1: threshold `1e300` is beyond 64 bits"),
        ("0,0,backlog_bytes,1e9999,0|0,1,leaf,0,0|0,2,leaf,0,0", "record 1: threshold `1e9999` is beyond 64 bits"),
        ("0,0,backlog,1,0|0,1,leaf,0,0|0,2,leaf,0,0", "record 1: unknown feature `backlog`"),
        (f"0,0,{N + 1},1,0|0,1,leaf,0,0|0,2,leaf,0,0", f"record 1: feature number {N + 1} of {N}"),
        ("0,0,backlog_bytes,1,0|0,1,leaf,0,4|0,2,leaf,0,0", "record 2: class_id `4` is none of 0 to 3"),
        ("0,0,backlog_bytes,1,0|0,1,leaf,0,|0,2,leaf,0,0", "record 2: class_id `` is none of 0 to 3"),
        ("0,0,backlog_bytes,1,0|0,1,leaf,nan,0|0,2,leaf,0,0", "record 2: value `nan` is not a finite number"),
        ("0,0,leaf,0,0|-1,2,leaf,0,0", "record 2: father_id `-1` is not a whole number"),
        ("0,0,leaf,0,0\x00", "line 1, record 1: has characters that are not printable ASCII"),
        ("0,0,leaf,0,0||0,1,leaf,0,0", "record 2: has 1 fields"),
    ],
)
def test_refused_with_the_place(text, said):
    with pytest.raises(text_tree.TextTreeError, match=said.replace("(", r"\(").replace(")", r"\)").replace("|", r"\|")):
        loads(text)


def test_too_many_nodes_and_deep_chains():
    chain = ["0,0,backlog_bytes,0,0"]
    for i in range(2046):
        chain += [f"{2 * i},{2 * i + 1},leaf,0,1", f"{2 * i},{2 * i + 2},backlog_bytes,{i + 1},0"]
    chain += [f"{2 * 2046},4093,leaf,0,1", f"{2 * 2046},4094,leaf,0,3"]
    tree = loads("|".join(chain))
    assert tree.n_nodes == 4095 and tree.predict(row(backlog_bytes=10_000)) == 3
    with pytest.raises(text_tree.TextTreeError, match="record 4096: a tree has at most 4095 nodes"):
        loads("|".join(["0,0,leaf,0,0"] * 4096))


@st.composite
def trees(draw, depth: int = 5) -> Tree:
    columns = {"feature": [], "threshold": [], "right": [], "missing": [], "class": []}

    def node(left: int) -> None:
        here = len(columns["feature"])
        inner = left > 0 and draw(st.booleans())
        columns["feature"].append(draw(st.integers(0, N - 1)) if inner else -1)
        columns["threshold"].append(draw(st.integers(1 - 2**63, 2**63 - 1)) if inner else 0)
        columns["missing"].append(inner and draw(st.booleans()))
        columns["class"].append(0 if inner else draw(st.integers(0, 3)))
        columns["right"].append(0)
        if inner:
            node(left - 1)
            columns["right"][here] = len(columns["feature"])
            node(left - 1)

    node(depth)
    n = len(columns["feature"])
    permille = np.zeros((n, 3), np.uint16)
    for i, c in enumerate(columns["class"]):
        if c:
            permille[i, c - 1] = 1000
    return Tree(
        np.array(columns["feature"], np.int32),
        np.array(columns["threshold"], np.int64),
        np.array(columns["right"], np.int32),
        np.array(columns["missing"], bool),
        np.array(columns["class"], np.uint8),
        permille,
        PROGRAM.feature_hash,
    )


def same(a: Tree, b: Tree, but: tuple = ()) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in {"feature", "threshold", "right", "missing_right", "leaf_class", "leaf_permille"} - set(but)
    )


@given(trees())
def test_every_tree_comes_back_from_text_and_from_json(tree):
    assert same(loads(text_tree.dumps(tree, PROGRAM.features)), tree, but=("missing_right",))
    assert same(loads(text_tree.dumps(tree, PROGRAM.features, numeric=True)), tree, but=("missing_right",))
    back, program = json_tree.loads(json_tree.dumps(tree, PROGRAM))
    assert same(back, tree) and program is PROGRAM
    assert bool(text_tree.lost_in_text(tree)) == bool(tree.missing_right.any())


@given(st.text(max_size=200) | st.from_regex(r"(\d,\d,[a-z_0]{0,5},[-\d.e]{0,4},\d\|?){1,6}", fullmatch=True))
def test_garbage_is_refused_or_is_a_tree(text):
    try:
        tree = loads(text)
    except text_tree.TextTreeError:
        return
    assert tree.n_nodes >= 1


def test_a_tree_of_an_earlier_release_is_over_the_features_that_there_were():
    earlier = PROGRAM.beginning(45)
    tree = text_tree.loads(GOOD, earlier.features, earlier.feature_hash)
    back, program = json_tree.loads(json_tree.dumps(tree, earlier))
    assert program == earlier and len(program.words) == 45 and program.features == PROGRAM.features[:45]
    assert back.feature_hash == earlier.feature_hash != PROGRAM.feature_hash
    assert json_tree.loads((REPOSITORY / "lab/evaluate/models/tree.json").read_text())[1].name == "congestion"
    changed = ((*earlier.words[0][:6], 2, *earlier.words[0][7:]), *earlier.words[1:])
    with pytest.raises(programs.NotPackagable, match="feature_mismatch"):
        programs.of_bytes(programs.program_file.to_bytes(list(changed), earlier.decision_interval_us), "a model")
