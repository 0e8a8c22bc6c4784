"""The paper's Tables 5 and 6 and its Fig. 8 on our samples: what goes with the sender's window, how well eight
regressors find it by the paper's split of rows and by an honest one, and the window over time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oal_training.window import dataset, validation
from oal_training.window.ensembles import TABLE_6
from oal_training.window.regressors import xgboost
from oal_training.window.validation import UNA

JUDGED = "learning"
ROUNDS = 500
SEED = 11
TEST_SHARE = 0.25  # of rows, split at random; the paper does not say its own
LONGEST = 3  # flows in the picture
#: Table 5: what the paper calls it, its correlation with the sender's window, our column
TABLE_5 = (
    ("unacknowledged bytes (UNA)", 0.52, UNA[0]),
    ("data rate over the links", 0.50, "tx_bitrate_mean_kbps"),
    ("channel's transmit utility", 0.49, "channel_tx_ms"),
    ("signal", 0.27, "signal_min_dbm"),
    ("channel busy", 0.23, "channel_busy_ms"),
    ("retransmission ratio", 0.20, "retry_permille_1s"),
    ("noise", -0.13, "noise_dbm"),
)
SEVEN = tuple(column for _, _, column in TABLE_5)
INPUTS = {"UNA only": UNA, "the paper's seven": SEVEN, "all": None}
#: Table 6: R² of UNA only and of all seven, rows split at random
PAPER_R2 = {
    "GradientBoosting": (0.2911, 0.5362),
    "RandomForest": (0.2902, 0.5135),
    "Linear": (0.2713, 0.4354),
    "Voting": (0.2892, 0.5246),
    "AdaBoost": (0.2715, 0.3900),
    "Bagging": (0.2902, 0.4685),
    "ExtraTrees": (0.2902, 0.5045),
    "XGB": (0.2911, 0.5374),
}
SPLITS = {
    "rows": f"the paper's: {TEST_SHARE:.0%} of the rows at random to test; a flow's neighbouring samples stand on both"
    " sides",
    "time": validation.SPLITS["time"],
}


@dataclass(frozen=True)
class Figure:
    """A value and its 95 % interval: bootstrap over flows."""

    value: float
    low: float
    high: float

    def text(self, places: int = 3) -> str:
        """As people read it; - where there is none."""
        if not np.isfinite(self.value):
            return "-"
        return f"{self.value:.{places}f} ({self.low:.{places}f}…{self.high:.{places}f})"


def _draws(flow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number of the flow of each sample, and how often each flow is drawn [ROUNDS, flows]."""
    names, number = np.unique(flow, return_inverse=True)
    rng = np.random.default_rng(SEED)
    return number, rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=ROUNDS).astype(float)


def _sums(number: np.ndarray, drawn: np.ndarray, values: np.ndarray) -> np.ndarray:
    return drawn @ np.bincount(number, values, drawn.shape[1])


def _figure(exact: float, every: np.ndarray) -> Figure:
    low, high = np.nanquantile(every, (0.025, 0.975)) if np.isfinite(exact) else (np.nan, np.nan)
    return Figure(float(exact), float(low), float(high))


def r2(y: np.ndarray, predicted: np.ndarray, flow: np.ndarray) -> Figure:
    """R² of predictions of y, bytes; a negative window counts as none."""
    error = (np.maximum(predicted, 0.0) - y) ** 2
    number, drawn = _draws(flow)
    n, total, squares, errors = (_sums(number, drawn, v) for v in (np.ones(len(y)), y, y * y, error))
    return _figure(1 - error.sum() / ((y - y.mean()) ** 2).sum(), 1 - errors / (squares - total**2 / n))


def pearson(x: np.ndarray, y: np.ndarray, flow: np.ndarray) -> Figure:
    """Pearson's correlation of the samples where x is known; NaN where x does not vary."""
    some = np.isfinite(x)
    x, y, flow = x[some], y[some], flow[some]
    if len(x) < 2 or np.ptp(x) == 0:
        return Figure(*(float("nan"),) * 3)
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    number, drawn = _draws(flow)
    n, sx, sy, xx, yy, xy = (_sums(number, drawn, v) for v in (np.ones(len(x)), x, y, x * x, y * y, x * y))
    with np.errstate(invalid="ignore", divide="ignore"):
        every = (xy - sx * sy / n) / np.sqrt((xx - sx**2 / n) * (yy - sy**2 / n))
    return _figure(float(np.mean(x * y)), every)


def correlations(data: dataset.Dataset) -> list[dict]:
    """Table 5: the paper's seven, then our other inputs by falling |correlation|."""
    rows = []
    for said, paper, name in TABLE_5:
        figure = pearson(data.x[:, data.names.index(name)], data.y, data.flow) if name in data.names else None
        rows.append({"metric": said, "paper": paper, "column": name, "here": figure})
    others = [name for name in data.names if name not in SEVEN]
    found = [(name, pearson(data.x[:, data.names.index(name)], data.y, data.flow)) for name in others]
    found = sorted((f for f in found if np.isfinite(f[1].value)), key=lambda f: -abs(f[1].value))
    return rows + [{"metric": None, "paper": None, "column": name, "here": figure} for name, figure in found]


def masks(data: dataset.Dataset, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Masks (train, test) of one split."""
    if split == "time":
        return next(validation.by_time(data))
    test = np.random.default_rng(SEED).random(len(data)) < TEST_SHARE
    return ~test, test


def regressions(data: dataset.Dataset, names=tuple(TABLE_6), splits=tuple(SPLITS), log=lambda _: None) -> list[dict]:
    """Table 6: a row a regressor; R² by split and inputs."""
    rows = []
    for name in names:
        row = {"regressor": name, "paper": PAPER_R2[name], "r2": {}}
        for split in splits:
            train, test = masks(data, split)
            for inputs, columns in INPUTS.items():
                columns = None if columns is None else [c for c in columns if c in data.names]
                mine = data if columns is None else data.only(columns)
                log(f"{name}, {inputs}, split by {split}")
                predicted = validation.fitted(TABLE_6[name], mine.x[train], mine.y[train]).predict(mine.x[test])
                row["r2"][f"{split}, {inputs}"] = r2(mine.y[test], predicted, mine.flow[test])
        rows.append(row)
    return rows


def over_time(data: dataset.Dataset) -> dict:
    """Fig. 8: XGBoost of the first part of the time on the longest flows of the rest, which it never saw: lists of
    {"flow", "cc", "s", "true", "regressed"} (seconds since the flow's first sample, bytes).
    """
    train, test = masks(data, "time")
    there = data[test]
    predicted = np.maximum(xgboost().fit(data.x[train], data.y[train]).predict(there.x), 0)
    flows, counts = np.unique(there.flow, return_counts=True)
    longest = flows[np.argsort(-counts, kind="stable")[:LONGEST]]
    curves = []
    for flow in longest:
        mine = there.flow == flow
        curves.append(
            {
                "flow": f"{int(flow):016x}",
                "cc": str(there.cc[mine][0]),
                "s": ((there.ts_us[mine] - there.ts_us[mine][0]) / 1e6).round(1).tolist(),
                "true": there.y[mine].tolist(),
                "regressed": [float(v) for v in predicted[mine].round()],
            }
        )
    return {"r2": r2(there.y, predicted, there.flow), "flows": len(flows), "samples": int(test.sum()), "curves": curves}


def markdown(data: dataset.Dataset, table_5: list[dict], table_6: list[dict], curves: dict) -> str:
    """The tables as text."""
    lines = [
        "# The sender's congestion window",
        "",
        f"{data.describe()}.",
        "",
        "## Correlation with the window (Table 5)",
        "",
        "| the paper's metric | column | paper | here |",
        "|---|---|---:|---:|",
    ]
    for row in table_5:
        paper = "-" if row["paper"] is None else f"{row['paper']:.2f}"
        here = "-" if row["here"] is None else row["here"].text(2)
        lines.append(f"| {row['metric'] or '-'} | `{row['column']}` | {paper} | {here} |")
    keys = list(table_6[0]["r2"])
    lines += [
        "",
        "## R² of eight regressors (Table 6)",
        "",
        "| regressor | paper: UNA only | paper: seven | " + " | ".join(keys) + " |",
        "|---|" + "---:|" * (2 + len(keys)),
        *(
            f"| {row['regressor']} | {row['paper'][0]:.3f} | {row['paper'][1]:.3f} | "
            + " | ".join(row["r2"][key].text() for key in keys)
            + " |"
            for row in table_6
        ),
        "",
        *(f"- {name}: {text}" for name, text in SPLITS.items()),
        f"- in brackets 95 %: bootstrap over flows, {ROUNDS} draws; Pearson's correlation",
        "- signal is the least of the access point's stations, not the flow's own",
        "",
        "## Window over time (Fig. 8)",
        "",
        f"window.png: XGBoost of all inputs, split by time, on the {len(curves['curves'])} longest of the"
        f" {curves['flows']} flows that it never saw. R² over all of them {curves['r2'].text()}.",
    ]
    return "\n".join(lines) + "\n"


def _plain(value):
    """For JSON: intervals as lists, NaN as null."""
    if isinstance(value, Figure):
        return _plain({"value": value.value, "95": [value.low, value.high]})
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return round(value, 5) if np.isfinite(value) else None
    return value


def draw(path: Path, curves: dict) -> None:
    """Fig. 8: true and regressed window of each flow over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, grid = plt.subplots(len(curves["curves"]), 1, figsize=(9, 7), layout="constrained", squeeze=False)
    for number, (axes, curve) in enumerate(zip(grid.flat, curves["curves"]), 1):
        axes.step(curve["s"], np.array(curve["true"]) / 1000, where="post", color="#1b3a6b", label="sender's window")
        axes.plot(curve["s"], np.array(curve["regressed"]) / 1000, color="#c0392b", linewidth=1, label="regressed")
        axes.set(ylabel="kB", ylim=(0, None), title=f"flow {number}, {curve['cc']}")
        axes.grid(alpha=0.3)
    grid.flat[0].legend(loc="upper right")
    grid.flat[-1].set_xlabel("seconds since the flow's first sample")
    figure.suptitle("Congestion window: the sender's and what the access point makes of it")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def write(folder: Path, data: dataset.Dataset, table_5: list[dict], table_6: list[dict], curves: dict) -> None:
    """window.md, window.json, window.png into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "window.md").write_text(markdown(data, table_5, table_6, curves), encoding="utf-8")
    whole = {"table_5": table_5, "table_6": table_6, "splits": SPLITS, "over_time": curves}
    (folder / "window.json").write_text(json.dumps(_plain(whole), indent=1) + "\n", encoding="utf-8")
    draw(folder / "window.png", curves)


def mlflow_figures(table_5: list[dict], table_6: list[dict]) -> dict[str, float]:
    """Metrics of a run: r.COLUMN and r2.REGRESSOR.SPLIT.INPUTS."""
    slug = lambda text: text.replace(", ", ".").replace("the paper's ", "").replace(" ", "_")
    out = {f"r.{row['column']}": row["here"].value for row in table_5 if row["here"]}
    for row in table_6:
        out |= {f"r2.{row['regressor']}.{slug(key)}": figure.value for key, figure in row["r2"].items()}
    return {k: v for k, v in out.items() if np.isfinite(v)}
