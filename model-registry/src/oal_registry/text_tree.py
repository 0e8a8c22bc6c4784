"""Trees as five-field text records: `father_id,itself_id,name,value,class_id`, joined by `|`.

The root has father = itself = 0. Records are in preorder, the left child first; `value <= threshold` goes left. A
leaf is named `leaf`, or 0 where names are numeric ids: feature 1 is then the program's first. A leaf's class_id is 0
(Good) … 3 (Bad); its value, and the class_id of inner nodes, mean nothing and are written as 0.

Features are integers, so `x <= t` and `x <= floor(t)` say the same of every x: a fractional threshold is floored, which
is exact. A missing value goes left at every node (the records cannot say otherwise). The records hold no probabilities:
an imported leaf is certain of its class.
"""

from __future__ import annotations

import re
from decimal import ROUND_FLOOR, Decimal, InvalidOperation

import numpy as np
from oal_schema.settings import settings
from oal_schema.tree import CLASSES, Tree

from oal_registry.errors import RegistryError

MAX_TEXT = 4 << 20
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?")
IDENTITY = re.compile(r"\d{1,18}")
INT64_MAX = (1 << 63) - 1


class TextTreeError(RegistryError):
    """Text that is no tree; says at which record of which line."""


class _Record:
    __slots__ = ("where", "father", "itself", "name", "value", "class_id", "children")

    def __init__(self, where: str, fields: list[str]):
        self.where, self.children = where, []
        if len(fields) != 5:
            raise TextTreeError(
                f"{where}: has {len(fields)} fields instead of the five father_id,itself_id,name,value,class_id"
            )
        self.father, self.itself = self._identity("father_id", fields[0]), self._identity("itself_id", fields[1])
        self.name, self.value, self.class_id = fields[2:]

    def _identity(self, what: str, text: str) -> int:
        if not IDENTITY.fullmatch(text):
            raise TextTreeError(f"{self.where}: {what} `{text[:40]}` is not a whole number")
        return int(text)


def loads(text: str, features: tuple[str, ...], feature_hash: int) -> Tree:
    """The tree of text records over the named features; TextTreeError with the record's place otherwise."""
    if len(text) > MAX_TEXT:
        raise TextTreeError(f"{len(text)} characters; a tree is at most {MAX_TEXT}")
    nodes, root = _link(_records(text))
    names = {name: i for i, name in enumerate(features)}
    columns = {key: [] for key in ("feature", "threshold", "right", "leaf_class")}
    # Iterative preorder: a tree that is a chain is deeper than Python's stack. `later` holds (node, index of the father
    # it is right child of).
    later: list[tuple[_Record, int | None]] = [(root, None)]
    while later:
        node, father = later.pop()
        here = len(columns["feature"])
        if father is not None:
            columns["right"][father] = here
        feature = _feature(node, names)
        columns["feature"].append(feature)
        columns["threshold"].append(_threshold(node) if feature >= 0 else _leaf_value(node))
        columns["leaf_class"].append(0 if feature >= 0 else _class(node))
        columns["right"].append(0)
        if feature >= 0:
            if len(node.children) != 2:
                raise TextTreeError(f"{node.where}: node {node.itself} has {len(node.children)} of its two children")
            later += [(node.children[1], here), (node.children[0], None)]
        elif node.children:
            raise TextTreeError(f"{node.children[0].where}: is a child of node {node.itself}, which is a leaf")
    n = len(columns["feature"])
    leaf_class = np.array(columns["leaf_class"], np.uint8)
    permille = np.zeros((n, CLASSES - 1), np.uint16)
    certain = np.flatnonzero((np.array(columns["feature"]) < 0) & (leaf_class > 0))
    permille[certain, leaf_class[certain] - 1] = 1000
    return Tree(
        np.array(columns["feature"], np.int32),
        np.array(columns["threshold"], np.int64),
        np.array(columns["right"], np.int32),
        np.zeros(n, bool),
        leaf_class,
        permille,
        feature_hash,
    )


def _records(text: str) -> list[_Record]:
    records = []
    limit = settings()["max_tree_nodes"]
    for line_number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line:
            continue
        for field in line.strip("|").split("|"):
            where = f"line {line_number}, record {len(records) + 1}"
            if not field.isascii() or not field.isprintable():
                raise TextTreeError(f"{where}: has characters that are not printable ASCII")
            if len(records) == limit:
                raise TextTreeError(f"{where}: a tree has at most {limit} nodes")
            records.append(_Record(where, [part.strip() for part in field.split(",")]))
    if not records:
        raise TextTreeError("there is no record")
    return records


def _link(records: list[_Record]) -> tuple[dict[int, _Record], _Record]:
    """Children lists filled in; every node hangs on the root, which is the first record."""
    nodes: dict[int, _Record] = {}
    for record in records:
        if record.father == record.itself:
            if record.itself != 0:
                raise TextTreeError(f"{record.where}: node {record.itself} is its own father; only the root, 0, is")
            if 0 in nodes:
                raise TextTreeError(f"{record.where}: is a second root; the first is at {nodes[0].where}")
            if nodes:
                raise TextTreeError(f"{record.where}: the root must be the first record")
        elif record.itself in nodes:
            raise TextTreeError(f"{record.where}: node {record.itself} is already at {nodes[record.itself].where}")
        nodes[record.itself] = record
    root = records[0]
    if root.father != root.itself:
        raise TextTreeError(f"{root.where}: the first record must be the root, father = itself = 0")
    for record in records[1:]:
        if record.father not in nodes:
            raise TextTreeError(f"{record.where}: its father {record.father} is not there")
        nodes[record.father].children.append(record)
    for record in records:
        if len(record.children) > 2:
            raise TextTreeError(f"{record.children[2].where}: is a third child of node {record.itself}")
    _refuse_cycles(records, nodes)
    return nodes, root


def _refuse_cycles(records: list[_Record], nodes: dict[int, _Record]) -> None:
    hangs = {0}
    for record in records:
        path = []
        at = record
        while at.itself not in hangs:
            if at.itself in path:
                raise TextTreeError(
                    f"{record.where}: cycle: node {record.itself} does not hang on the root but on itself"
                )
            path.append(at.itself)
            at = nodes[at.father]
        hangs.update(path)


def _feature(node: _Record, names: dict[str, int]) -> int:
    """Index of the feature, -1 for a leaf."""
    if node.name == "leaf":
        return -1
    if node.name in names:
        return names[node.name]
    if node.name.isdigit() and len(node.name) < 6:
        number = int(node.name)
        if number <= len(names):
            return number - 1
        raise TextTreeError(f"{node.where}: feature number {number} of {len(names)}")
    raise TextTreeError(
        f"{node.where}: unknown feature `{node.name[:60]}`; the program has {', '.join(list(names)[:4])}, …"
    )


def _number(node: _Record, what: str) -> Decimal:
    if not NUMBER.fullmatch(node.value):
        raise TextTreeError(f"{node.where}: {what} `{node.value[:40]}` is not a finite number")
    try:
        return Decimal(node.value)
    except InvalidOperation:
        raise TextTreeError(f"{node.where}: {what} `{node.value[:40]}` is not a number") from None


def _threshold(node: _Record) -> int:
    value = _number(node, "threshold")
    if not -(1 << 63) < value < (1 << 63):
        raise TextTreeError(f"{node.where}: threshold `{node.value[:40]}` is beyond 64 bits")
    return int(value.to_integral_value(ROUND_FLOOR))


def _leaf_value(node: _Record) -> int:
    _number(node, "value")
    return 0


def _class(node: _Record) -> int:
    if not re.fullmatch(r"\d{1,3}", node.class_id) or int(node.class_id) >= CLASSES:
        raise TextTreeError(f"{node.where}: class_id `{node.class_id[:40]}` is none of 0 to {CLASSES - 1}")
    return int(node.class_id)


def dumps(tree: Tree, features: tuple[str, ...], numeric: bool = False) -> str:
    """Text records of a tree, one line; names are the features' or, if `numeric`, their numbers from 1."""
    father = np.zeros(tree.n_nodes, np.int64)
    for i in np.flatnonzero(tree.feature >= 0):
        father[i + 1] = father[tree.right[i]] = i
    records = []
    for i in range(tree.n_nodes):
        feature = int(tree.feature[i])
        if feature < 0:
            records.append(f"{father[i]},{i},{'0' if numeric else 'leaf'},0,{tree.leaf_class[i]}")
        else:
            records.append(f"{father[i]},{i},{feature + 1 if numeric else features[feature]},{tree.threshold[i]},0")
    return "|".join(records) + "\n"


def lost_in_text(tree: Tree) -> list[str]:
    """What the records cannot say of this tree, in words."""
    inner = tree.feature >= 0
    lost = []
    if right := int(np.count_nonzero(tree.missing_right & inner)):
        lost.append(f"{right} nodes send a missing value right; in text it goes left")
    leaf = ~inner
    if np.any(tree.leaf_permille[leaf].max(axis=1, initial=0) % 1000):
        lost.append("the leaves' probabilities; an imported leaf is certain of its class")
    return lost
