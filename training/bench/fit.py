"""CPU time and quality of a fit: made-up items (10,000 × 40) and the lab's, scikit-learn beside.

Writes build/bench/training-fit.json.

CPU time of the process, so that a busy machine changes it little; the median of many fits, each after ten new items
have come. Quality: macro F1 on 1,500 items of trees fitted on the 5,000 before them (less a gap as long as a label's
lead), mean of 20 such pairs that roll through the items. One pair alone says little: on the lab's items the difference
of two trees scatters by 0.04 from pair to pair.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from oal_training.online.kernel import Evaluator, Fitter
from oal_training.online.score import macro_f1
from oal_training.online.settings import load
from oal_training.online.window import Window
from oal_training.stored.parquet import read_columns
from sklearn.tree import DecisionTreeClassifier

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = [ROOT / "lab" / "captures" / f"{name}.items.parquet" for name in ("learning2", "learning")]
FITS = 50
GAP = 12  # items between those fitted on and those judged on
FITTED, JUDGED, PAIRS = 5000, 1500, 20
NODES, DEPTH, LEAF = 255, 12, 20  # of both; the trees of online.yaml are smaller


def made_up(n: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Counters, rare events, random walks and noise; a class that follows from some of them."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1_000_000, (n, features))
    x[:, 10:20] = (rng.random((n, 10)) < 0.1) * rng.integers(1, 50, (n, 10))
    x[:, 20:30] = np.cumsum(rng.normal(0, 100, (n, 10)), 0)
    s = x[:, 0] / 1e6 + x[:, 1] / 1e6 * (x[:, 10] > 0) + rng.normal(0, 0.2, n) + np.sin(x[:, 2] / 2e5)
    return x, np.digitize(s, np.quantile(s, [0.5, 0.75, 0.9])).astype(np.uint8)


def of_lab() -> tuple[np.ndarray, np.ndarray]:
    """Items of both learning captures, one after the other."""
    x, y = [], []
    for path in CAPTURES:
        columns = read_columns(path)[0]
        whole = np.array(columns["complete"], bool)
        x.append(np.array(columns["features"], np.int64)[whole])
        y.append(np.array(columns["class"], np.uint8)[whole])
    return np.concatenate(x)[-10_000:], np.concatenate(y)[-10_000:]


def fill(x: np.ndarray, y: np.ndarray) -> Window:
    fit = load().fit
    window = Window(len(x), x.shape[1], fit.bins, fit.edges_per_fit)
    for i in range(len(x)):
        add(window, x, y, i)
    window.prepare()
    return window


def add(window: Window, x: np.ndarray, y: np.ndarray, i: int) -> None:
    window.add(
        x[i], ts_us=i, truth=y[i], class_now=0, loss=0, loss_now=0, held_class=0, held_congested=0, offset=i, doubtful=0
    )


def cpu_ms(call, times: int) -> list[float]:
    took = []
    for _ in range(times):
        start = time.process_time_ns()
        call()
        took.append((time.process_time_ns() - start) / 1e6)
    return took


def quality(x: np.ndarray, y: np.ndarray, fitter: Fitter, theirs: DecisionTreeClassifier) -> tuple[float, float]:
    """Macro F1 of our tree and of scikit-learn's on the items after those that both were fitted on."""
    window = fill(x[:FITTED], y[:FITTED])
    train, test = np.arange(FITTED - GAP, dtype=np.int32), np.arange(FITTED, FITTED + JUDGED, dtype=np.int32)
    tree = fitter.fit(window.binning, window.binned, window.truth, train, np.ones(4, np.float32), 1)
    ours, _ = Evaluator(tree).predict(np.ascontiguousarray(x), test)
    theirs.fit(x[train], y[train])
    return tuple(macro_f1(predicted, y[test]) for predicted in (ours, theirs.predict(x[test]).astype(np.int64)))


def measure(what: str, x: np.ndarray, y: np.ndarray) -> list[dict]:
    s = load().fit
    fitter = Fitter(s.max_nodes, s.max_depth, s.min_leaf, s.min_gain, s.smoothing)
    full = Fitter(NODES, DEPTH, LEAF, 0.0, s.smoothing)
    even, everything = np.ones(4, np.float32), np.arange(len(x), dtype=np.int32)
    window = fill(x, y)
    nodes = []

    def second(with_fitter: Fitter) -> None:
        for i in range(10):
            add(window, x, y, i)
        window.prepare()
        nodes.append(with_fitter.fit(window.binning, window.binned, window.truth, everything, even, 1).n_nodes)

    ours_full, ours = cpu_ms(lambda: second(full), FITS), cpu_ms(lambda: second(fitter), FITS)
    size = f"{len(x):,} {what} items × {x.shape[1]} features"
    theirs = lambda: DecisionTreeClassifier(
        max_leaf_nodes=(NODES + 1) // 2, max_depth=DEPTH, min_samples_leaf=LEAF, random_state=0
    )
    sk_ms = cpu_ms(lambda: theirs().fit(x, y), 5)
    f1, sk_f1 = np.mean(
        [
            quality(x[first:], y[first:], full, theirs())
            for first in np.linspace(0, len(x) - FITTED - JUDGED, PAIRS).astype(int)
        ],
        axis=0,
    )
    print(
        f"training: {size}: {np.median(ours_full):.2f} ms CPU a tree of {nodes[0]} nodes (least {min(ours_full):.2f}), "
        f"{np.median(ours):.2f} ms as online.yaml says ({nodes[-1]} nodes); "
        f"scikit-learn {np.median(sk_ms):.0f} ms; mean macro F1 on later items {f1:.3f}, scikit-learn {sk_f1:.3f}",
        flush=True,
    )
    return [
        record(
            f"training.fit_{what}_ms",
            np.median(ours_full),
            "ms CPU",
            f"{size}, ten new items binned and a tree of {nodes[0]} nodes fitted; least {min(ours_full):.2f}",
        ),
        record(
            f"training.fit_{what}_settings_ms",
            np.median(ours),
            "ms CPU",
            f"the same with the limits of online.yaml: {nodes[-1]} nodes",
        ),
        record(
            f"training.sklearn_{what}_ms",
            np.median(sk_ms),
            "ms CPU",
            f"DecisionTreeClassifier of the same limits, at most {NODES} nodes",
        ),
        record(
            f"training.f1_{what}",
            f1,
            "macro F1",
            f"mean of {PAIRS} pairs: fitted on {FITTED:,} items, judged on the {JUDGED:,} that follow",
        ),
        record(f"training.f1_sklearn_{what}", sk_f1, "macro F1", "the same of scikit-learn"),
        record(
            f"training.f1_loss_{what}", sk_f1 - f1, "macro F1", "scikit-learn's minus ours; negative: ours is better"
        ),
    ]


def decision() -> list[dict]:
    """A whole decision of the online trainer: edges, binning, fit, three rivals scored."""
    from oal_schema.item import Item
    from oal_training.online import replay

    t = read_columns(CAPTURES[1])[0]
    items = [
        Item(
            "ap",
            "lab",
            int(t["ts_us"][i]),
            1,
            int(t["feature_hash"][i]),
            t["features"][i].tolist(),
            int(t["horizon_us"][i]),
            int(t["class_now"][i]),
            int(t["class"][i]),
            float(t["loss_ratio"][i]),
            int(t["offered_pkts"][i]),
            bool(t["complete"][i]),
        )
        for i in range(len(t["ts_us"]))
    ]
    start = time.process_time()
    result = replay.run(items)
    each = (time.process_time() - start) / len(result.decisions) * 1000
    print(
        f"training: {each:.2f} ms CPU a decision, items and scores included: {1000 / each:.0f} APs a second and core"
        f" ({len(result.decisions)} decisions)"
    )
    return [
        record(
            "training.decision_ms",
            each,
            "ms CPU",
            f"replay of {CAPTURES[1].name}: ten items taken, tree fitted, three rivals scored; mean of"
            f" {len(result.decisions)}",
        ),
        record("training.aps_per_core", 1000 / each, "AP/s", "from training.decision_ms; Kafka not included"),
    ]


def record(name: str, value: float, unit: str, note: str) -> dict:
    return {
        "name": name,
        "value": round(float(value), 4),
        "unit": unit,
        "command": "make -C training bench",
        "note": note,
    }


def main() -> int:
    warnings.simplefilter("ignore")
    results = measure("synthetic", *made_up(10_000, 40))
    results += measure("lab", *of_lab()) + decision() if all(p.exists() for p in CAPTURES) else []
    out = ROOT / "build" / "bench" / "training-fit.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
