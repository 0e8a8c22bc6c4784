"""A tree as people read it: names, thresholds in units, the share of the classes; text, and a picture (the paper's
Fig. 7). Cut at a depth; what is below stands as one leaf with its shares.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DEPTH = 5  # of the paper's picture
FILES = ("tree.txt", "tree.png")
COLOURS = ("#3ca951", "#efb118", "#ff8a5c", "#c0392b")  # Good … Bad
#: unit of the contract → (divisor, what people say)
UNITS = {
    "B": (1000, "kB"), "us": (1000, "ms"), "kbit/s": (1000, "Mb/s"), "bit/s": (1_000_000, "Mb/s"), "ms": (1, "ms"),
    "permille": (10, "%"), "ppm": (10_000, "%"), "dBm": (1, "dBm"), "pkt": (1, "packets"),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class View:
    """A tree of n nodes, the root first. feature int[n], -1 at a leaf; threshold float[n]: a value of at most that goes
    left; left, right int[n]; missing_right bool[n]; weight float[n]: items that came there (1 a leaf where nobody
    knows); shares float[n, k]: of the classes among them; names, units: of the features; classes: names, mildest first.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_right: np.ndarray
    weight: np.ndarray
    shares: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...]
    classes: tuple[str, ...]
    counted: bool = True

    def depth(self, node: int = 0) -> int:
        """Edges from a node to its deepest leaf."""
        below, deepest = [(node, 0)], 0
        while below:
            at, level = below.pop()
            deepest = max(deepest, level)
            if self.feature[at] >= 0:
                below += [(int(self.left[at]), level + 1), (int(self.right[at]), level + 1)]
        return deepest


def of_sklearn(tree, names: tuple[str, ...], units: tuple[str, ...], classes: tuple[str, ...]) -> View:
    """Of a fitted DecisionTreeClassifier: weights and shares are those of its training items."""
    nodes = tree.tree_
    n = nodes.node_count
    value = np.asarray(nodes.value[:, 0, :], float)
    shares = np.zeros((n, len(classes)))
    shares[:, np.asarray(tree.classes_, int)] = value / np.maximum(value.sum(1, keepdims=True), 1e-12)
    return View(
        np.where(nodes.children_left < 0, -1, nodes.feature),
        np.asarray(nodes.threshold, float),
        np.asarray(nodes.children_left),
        np.asarray(nodes.children_right),
        ~np.asarray(nodes.missing_go_to_left)[:n].astype(bool),
        np.asarray(nodes.n_node_samples, float),
        shares,
        names,
        units,
        classes,
    )


def of_compiled(tree, names: tuple[str, ...], units: tuple[str, ...], classes: tuple[str, ...]) -> View:
    """Of an `oal_schema.tree.Tree`: it says the shares of its leaves; how many items came there it does not say, so
    every leaf weighs the same above them.
    """
    n = tree.n_nodes
    feature = np.asarray(tree.feature)
    leaf = feature < 0
    permille = np.asarray(tree.leaf_permille, float)
    shares = np.zeros((n, len(classes)))
    shares[leaf] = np.column_stack([1000 - permille.sum(1), permille])[leaf] / 1000
    weight = leaf.astype(float)
    left = np.where(leaf, 0, np.arange(n) + 1)
    for node in range(n - 1, -1, -1):  # preorder: children come after their father
        if not leaf[node]:
            a, b = left[node], tree.right[node]
            weight[node] = weight[a] + weight[b]
            shares[node] = (weight[a] * shares[a] + weight[b] * shares[b]) / weight[node]
    return View(
        feature, np.asarray(tree.threshold, float), left, np.asarray(tree.right), np.asarray(tree.missing_right, bool),
        weight, shares, names, units, classes, counted=False,
    )  # fmt: skip


def units_of(described: bytes) -> dict[str, str]:
    """Unit of each feature of a compiled program's description (JSON as in schema/generated/features)."""
    return {f["name"]: f["unit"] for f in json.loads(described)["features"]}


def amount(value: float, unit: str) -> str:
    """A threshold with its unit: 62500 B is `62.5 kB`."""
    divisor, said = UNITS.get(unit, (1, "" if unit == "1" else unit))
    return f"{value / divisor:,.4g}{' ' + said if said else ''}" if abs(value) < 1e15 else "no limit"


def _question(view: View, node: int) -> str:
    """`name ≤ 3 kB`."""
    which = int(view.feature[node])
    # values are whole numbers: at most 2.5 is at most 2
    return f"{view.names[which]} ≤ {amount(float(np.floor(view.threshold[node])), view.units[which])}"


def shares_text(shares: np.ndarray, classes: tuple[str, ...]) -> str:
    """`Bad 71 %, Poor 20 %, Good 9 %`: the likeliest first, those under a per cent left out."""
    order = np.argsort(-shares, kind="stable")
    return ", ".join(f"{classes[k]} {shares[k]:.0%}".replace("%", " %") for k in order if shares[k] >= 0.01)


def text(view: View, depth: int = DEPTH) -> str:
    """The tree as indented lines, `yes` (the condition holds) before `no`; missing values take the branch marked ?."""
    lines: list[str] = []
    later = [(0, 0, "")]
    while later:
        node, level, edge = later.pop()
        head = "│  " * max(level - 1, 0) + ("├─ " if level else "") + edge
        share = f"{view.weight[node] / view.weight[0]:.1%} of items: " if view.counted else ""
        said = share + shares_text(view.shares[node], view.classes)
        if view.feature[node] < 0 or level == depth:
            inside = view.depth(node)
            lines.append(f"{head}{said}" + (f"  (… {inside} levels more)" if inside else ""))
            continue
        lines.append(f"{head}{_question(view, node)}?  [{said}]")
        missing = bool(view.missing_right[node])
        later += [
            (int(view.right[node]), level + 1, "no?  " if missing else "no   "),
            (int(view.left[node]), level + 1, "yes  " if missing else "yes? "),
        ]
    if not view.counted:
        lines.append("Shares above leaves: every leaf weighs the same; a compiled tree does not say how many came.")
    return "\n".join([*lines, "?: the branch that a missing value takes.", ""])


def _places(view: View, depth: int) -> dict[int, tuple[float, int]]:
    """(place of the leaf across, level) of each node down to `depth`; a father stands between its children."""
    places: dict[int, tuple[float, int]] = {}
    width = 0
    later = [(0, 0, False)]
    while later:
        node, level, done = later.pop()
        if view.feature[node] < 0 or level == depth:
            places[node] = (float(width), level)
            width += 1
        elif done:
            places[node] = ((places[int(view.left[node])][0] + places[int(view.right[node])][0]) / 2, level)
        else:
            later += [(node, level, True), (int(view.right[node]), level + 1, False),
                      (int(view.left[node]), level + 1, False)]  # fmt: skip
    return places


def draw(path: Path, view: View, depth: int = DEPTH, title: str = "") -> None:
    """The picture, from left to right: questions as text, shares of the classes as bars, lines as thick as the share of
    items that go there.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    places = _places(view, depth)
    leaves = max(1, round(max(across for across, _ in places.values())) + 1)
    levels = max(level for _, level in places.values())
    figure, axes = plt.subplots(figsize=(3.1 * (levels + 1), max(3.0, 0.42 * leaves + 1)), layout="constrained")
    bar, height = 0.62, 0.34  # of a column, of a line
    for node, (across, level) in places.items():
        x, y = float(level), -across
        inner = view.feature[node] >= 0 and level < depth
        if inner:
            for child, word in ((int(view.left[node]), "yes"), (int(view.right[node]), "no")):
                to, at = -places[child][0], level + 1
                thick = 0.6 + 5 * view.weight[child] / view.weight[0]
                axes.plot([x + bar, at - 0.12, at], [y, to, to], color="#c8ced6", linewidth=thick, zorder=1)
                axes.text(at - 0.03, to + 0.06, word, fontsize=6.5, color="#5b6670", ha="right", va="bottom")
            axes.text(x, y + height / 2 + 0.07, _question(view, node) + " ?", fontsize=7.5, va="bottom", zorder=4)
        begin = x
        for k, share in enumerate(view.shares[node]):
            axes.add_patch(
                Rectangle((begin, y - height / 2), bar * share, height, color=COLOURS[k], linewidth=0, zorder=3)
            )
            begin += bar * share
        best = int(np.argmax(view.shares[node]))
        said = f" {view.classes[best]} {view.shares[node][best]:.0%}"
        if view.counted:
            said += f" of {int(view.weight[node])}"
        if not inner:
            below = view.depth(node)
            axes.text(x + bar, y, said + (f", {below} levels more" if below else ""), fontsize=7, va="center", zorder=4)
    axes.legend(
        handles=[Patch(color=c, label=name) for c, name in zip(COLOURS, view.classes)], fontsize=7, ncols=4,
        loc="upper left", bbox_to_anchor=(0, 0), frameon=False,
    )  # fmt: skip
    axes.set(xlim=(-0.05, levels + 1.35), ylim=(-leaves + 0.3, 0.9))
    axes.axis("off")
    axes.set_title(title, fontsize=10, loc="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write(folder: Path, view: View, title: str, depth: int = DEPTH) -> None:
    """tree.txt (whole) and tree.png (cut) into `folder`."""
    (folder / FILES[0]).write_text(f"{title}\n\n{text(view, depth=1000)}", encoding="utf-8")
    draw(folder / FILES[1], view, depth, title)
