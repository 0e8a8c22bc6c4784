"""What an access point could foresee better if it knew how its neighbours are: lab/evaluate/peers. Takes the items
that `lessons` left (three access points on one channel, the same runs), fills the columns that the platform fills
(`peer_*`) from the other two's own, and fits with and without them on all seeds but one, which judges.

`told` is what push and AP do at their best: figures 5 s old. `at once` is more than any network gives: those of the
same instant."""
import argparse
import json
import pathlib
import sys

import numpy as np
from lightgbm import LGBMClassifier
from oal_registry import programs
from oal_schema import item
from sklearn.metrics import average_precision_score
from sklearn.tree import DecisionTreeClassifier

from . import learned, lessons, spread

AGES_US = {"told": 5_000_000, "at once": 0}
#: column that the platform fills: the others' own, and how several become one
FROM = {"peer_airtime_permille": ("tx_airtime_us", np.sum), "peer_busy_permille": ("channel_busy_ms", np.max),
        "peer_loss_permille": ("loss_permille_1s", np.max), "peer_backlog_bytes": ("backlog_bytes", np.sum)}
SLACK_US = 150_000  # an access point decides every 100 ms: an older item is none of that instant


def models() -> dict:
    """The policy's tree (policies/rwnd-fair/experiment.yaml) and a model that no access point could run."""
    return {"tree of 8 leaves": lambda: DecisionTreeClassifier(max_leaf_nodes=8, min_samples_leaf=50, random_state=0),
            "LightGBM": lambda: LGBMClassifier(n_estimators=60, num_leaves=15, random_state=0, verbose=-1, n_jobs=1)}


def table(found: list[item.Item]) -> dict[str, np.ndarray]:
    """Columns of the items that count, a row each: run (seed), ap, ts, now, truth, values [row, feature]."""
    found = [one for one in found if one.complete]
    runs = [lessons.named(one.ap_id) for one in found]
    values = np.array([one.features for one in found], float)
    values[values == item.MISSING] = np.nan
    return {"run": np.array([seed for seed, _ in runs]), "ap": np.array([int(ap) for _, ap in runs]),
            "ts": np.array([one.ts_us for one in found], np.int64), "now": np.array([one.class_now for one in found]),
            "truth": np.array([one.truth for one in found]), "values": values}


def told(rows: dict[str, np.ndarray], features: tuple[str, ...], age_us: int) -> np.ndarray:
    """`values` with the columns of FROM as the other access points of the run were `age_us` before, by their last item
    until then; missing where none has one.
    """
    out = rows["values"].copy()
    for run in np.unique(rows["run"]):
        for ap in np.unique(rows["ap"]):
            mine = np.flatnonzero((rows["run"] == run) & (rows["ap"] == ap))
            others = []
            for other in (o for o in np.unique(rows["ap"]) if o != ap):
                theirs = np.flatnonzero((rows["run"] == run) & (rows["ap"] == other))
                if not len(theirs) or not len(mine):
                    continue
                theirs = theirs[np.argsort(rows["ts"][theirs])]
                at = np.searchsorted(rows["ts"][theirs], rows["ts"][mine] - age_us, side="right") - 1
                known = (at >= 0) & (rows["ts"][mine] - age_us - rows["ts"][theirs[at]] <= SLACK_US)
                others.append(np.where(known[:, None], rows["values"][theirs[at]], np.nan))
            for column, (source, of) in FROM.items():
                if others:
                    seen = np.array([values[:, features.index(source)] for values in others])
                    some = np.isfinite(seen).any(axis=0)
                    filled = np.where(np.isfinite(seen), seen, 0)
                    out[mine, features.index(column)] = np.where(some, of(filled, axis=0), np.nan)
    return out


def judge(model, values: np.ndarray, rows: dict[str, np.ndarray], run: int) -> tuple[float, float]:
    """(share of items told right, onset average precision) of a run, by a model of all other runs."""
    test = rows["run"] == run
    fitted = model().fit(np.nan_to_num(values[~test], nan=-1.0), rows["truth"][~test])
    chances = fitted.predict_proba(np.nan_to_num(values[test], nan=-1.0))
    truth, calm = rows["truth"][test], rows["now"][test] < 2
    bad = chances[:, fitted.classes_ >= 2].sum(axis=1)
    right = float(np.mean(fitted.classes_[chances.argmax(axis=1)] == truth))
    return right, float(average_precision_score(truth[calm] >= 2, bad[calm]))


def compare(contexts: dict[str, list[item.Item]], features: tuple[str, ...]) -> dict:
    """{model: {"without" or a name of AGES_US: {"right", "onset_ap": a value a run}}}; contexts are judged together."""
    parts = [table(found) for found in contexts.values()]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    variants = {"without": rows["values"]} | {
        name: np.concatenate([told(part, features, age) for part in parts]) for name, age in AGES_US.items()}
    out: dict = {"items": len(rows["ts"]), "onsets": int(np.sum((rows["now"] < 2) & (rows["truth"] >= 2))),
                 "persistence_right": float(np.mean(rows["now"] == rows["truth"])), "models": {}}
    for name, model in models().items():
        out["models"][name] = {}
        for variant, values in variants.items():
            pairs = [judge(model, values, rows, run) for run in np.unique(rows["run"])]
            out["models"][name][variant] = {"right": [round(r, 4) for r, _ in pairs],
                                            "onset_ap": [round(a, 4) for _, a in pairs]}
    return out


def report(found: dict) -> str:
    """The table in README.md: what the columns add, a seed is a draw."""
    lines = ["| model | neighbours | right | onset AP | right, added | onset AP, added |", "|---|---|--:|--:|--:|--:|"]
    for model, variants in found["models"].items():
        for variant, figures in variants.items():
            cells = [f"{np.mean(figures[f]):.3f}" for f in ("right", "onset_ap")]
            for figure in ("right", "onset_ap"):
                more = spread.mean([a - b for a, b in zip(figures[figure], variants["without"][figure])])
                cells.append("" if variant == "without" else f"{more.value:+.3f} [{more.low:+.3f}, {more.high:+.3f}]")
            lines.append(f"| {model} | {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    p = argparse.ArgumentParser(prog="lab/evaluate/peers", description=__doc__)
    p.add_argument("--from", dest="kept", type=pathlib.Path, metavar="FILE", help="fit nothing: the table of a file")
    p.add_argument("--out", type=pathlib.Path, help="write the figures there")
    args = p.parse_args()
    if args.kept:
        print(report(json.loads(args.kept.read_text())))
        return 0
    names = [name for name in learned.read(learned.KEPT)["contexts"] if lessons.kept_items(name).exists()]
    if not names:
        print("peers: no items are there: run lab/evaluate/lessons", file=sys.stderr)
        return 1
    contexts = {name: list(item.lines(lessons.kept_items(name))) for name in names}
    found = {"contexts": names} | compare(contexts, programs.by_name()["congestion"].features)
    if args.out:
        args.out.write_text(json.dumps(found) + "\n")
    print(report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
