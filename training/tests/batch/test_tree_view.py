"""A tree as people read it says what the tree answers."""

from __future__ import annotations

import numpy as np
import pytest
from oal_schema.tree import Tree
from oal_training.batch import tree_view
from oal_training.stored.programs import known_programs
from sklearn.tree import DecisionTreeClassifier

NAMES, UNITS, CLASSES = ("backlog_bytes", "rtt_ewma_us"), ("B", "us"), ("Good", "Acceptable", "Poor", "Bad")


@pytest.fixture(scope="module")
def view():
    x = np.array([[0, 9_000], [1_000, 9_000], [62_500, 9_000], [70_000, 90_000], [80_000, 90_000]], float)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(x, [0, 0, 1, 3, 3])
    return tree_view.of_sklearn(tree, NAMES, UNITS, CLASSES)


def test_text_names_features_units_and_shares(view):
    text = tree_view.text(view)
    assert "Good 40 %, Bad 40 %, Acceptable 20 %" in text.splitlines()[0]
    assert "rtt_ewma_us ≤ 49.5 ms?" in text or "backlog_bytes ≤ 31.75 kB?" in text
    assert text.count("100.0% of items") == 1 and "Bad 100 %" in text


def test_what_is_below_the_cut_stands_as_one_leaf(view):
    text = tree_view.text(view, depth=1)
    assert "(… 1 levels more)" in text and len(text.splitlines()) == 4


def test_a_compiled_tree_says_where_missing_values_go_and_that_nothing_was_counted():
    tree = Tree(
        np.array([0, -1, -1], np.int32), np.array([5000, 0, 0]), np.array([2, 0, 0], np.int32),
        np.array([True, False, False]), np.array([0, 0, 3], np.uint8),
        np.array([[0, 0, 0], [0, 0, 0], [100, 100, 700]]), 7,
    )  # fmt: skip
    text = tree_view.text(tree_view.of_compiled(tree, NAMES, UNITS, CLASSES))
    assert text.splitlines()[0].startswith("backlog_bytes ≤ 5 kB?  [Good 55 %")
    assert "no?  Bad 70 %, Good 10 %, Acceptable 10 %, Poor 10 %" in text and "does not say how many came" in text


def test_the_picture_is_drawn(view, tmp_path):
    tree_view.write(tmp_path, view, "a tree")
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")
    assert "a tree" in (tmp_path / "tree.txt").read_text()


def test_units_are_those_of_every_program_that_versions_may_have():
    for program in known_programs().values():
        units = tree_view.units_of(program.json)
        assert units["seen_us" if program.described["name"] == "sessions" else "backlog_bytes"] in ("us", "B")
        assert tuple(units) == program.names
    assert tree_view.amount(2500, "ppm") == "0.25 %"
