"""Pictures of an evaluation."""
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from . import verdict  # noqa: E402
from .methods import CONTROLS, LOOKS_ON, POLICY_ACTS, QUEUE_KINDS, QUEUES, SENDERS, Method  # noqa: E402
from .results import Results  # noqa: E402

COLOURS = {("cubic", "fifo"): "#1f77b4", ("cubic", "fq"): "#17a398", ("bbr", "fifo"): "#d1495b",
           ("bbr", "fq"): "#e39100"}
COLOURS |= {pair: plt.get_cmap("tab20")(n % 20) for n, pair in enumerate(
    (control, queue) for control in SENDERS for queue in QUEUE_KINDS if (control, queue) not in COLOURS)}
MARKERS = {"": "o", "oal": "*", "clamp": "x", "oracle": "D", "oracle30": "d", "oracle20": ".", "queue": "^",
           "link": "1", "tree": "v", "always": "s", "alpha2": "P", "lean": "X", "late": "<", "forecast": "H",
           "ahead": ">", "oal-online": "p"}
SIZES = {"": 40, "oal": 130, "clamp": 40, "oracle": 36, "oracle30": 36, "oracle20": 36, "queue": 40, "link": 40,
         "tree": 40, "always": 36, "alpha2": 40, "lean": 40, "late": 40, "forecast": 40, "ahead": 40,
         "oal-online": 60}
LABELS = {"": "baseline", "oal": "OAL", "clamp": "fixed window", "oracle": "oracle", "oracle30": "oracle, 30 ms",
          "oracle20": "oracle, 20 ms", "queue": "OAL without a model",
          "link": "OAL without a model, windows follow links", "tree": "OAL by the tree alone",
          "always": "OAL always", "alpha2": "OAL without a model, alpha 2",
          "lean": "OAL without a model, leaning shares", "late": "windows by the last 200 ms",
          "forecast": "windows by a forecast", "ahead": "windows by the next 200 ms",
          "oal-online": "OAL with trees learned online"}
for _act in (*POLICY_ACTS, *LOOKS_ON):
    MARKERS[_act], SIZES[_act], LABELS[_act] = "h", 60, _act



def _mean(r: Results, scenario: str, which: Method, figure: str) -> float | None:
    found = verdict.mean(r, scenario, which, figure)
    return found.value if found else None


def _grid(count: int, width: float, height: float):
    columns = min(4, count)
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(max(9, width * columns), height * rows), squeeze=False)
    for axis in list(axes.flat)[count:]:
        axis.axis("off")
    return figure, list(axes.flat)


def _pair(control: str, queue: str) -> str:
    return f"{control.upper()}, {dict(fifo='FIFO', fq='FQ-CoDel + airtime').get(queue, queue)}"


def _legend(figure, r: Results) -> None:
    """Of what was played."""
    acts, pairs = {m.act for m in r.methods}, {(m.control, m.queue) for m in r.methods}
    handles = [
        plt.Line2D([], [], marker=MARKERS[act], color="#444", linestyle="", label=LABELS[act])
        for act in MARKERS if act in acts
    ]
    handles += [
        plt.Line2D([], [], marker="s", color=colour, linestyle="", label=_pair(*pair))
        for pair, colour in COLOURS.items() if pair in pairs
    ]
    figure.legend(handles=handles, loc="lower center", ncol=4, frameon=False)


def tradeoff(r: Results, path: pathlib.Path) -> None:
    """Throughput over p95 delay, a panel per scenario; a line from each baseline to OAL."""
    figure, axes = _grid(len(r.scenarios), 4, 3.4)
    for axis, name in zip(axes, r.scenarios):
        for which in r.methods:
            x, y = _mean(r, name, which, "delay_p95_ms"), _mean(r, name, which, "throughput_mbps")
            if x is None or y is None:
                continue
            colour = COLOURS[which.control, which.queue]
            hollow = {"facecolors": "none", "edgecolors": colour} if which.oracle else {"color": colour}
            axis.scatter([x], [y], marker=MARKERS[which.act], s=SIZES[which.act], zorder=3, **hollow)
            if which.act == "oal" and (x0 := _mean(r, name, which.baseline, "delay_p95_ms")) is not None:
                axis.plot([x0, x], [_mean(r, name, which.baseline, "throughput_mbps"), y], color=colour, linewidth=0.8,
                          alpha=0.6)
        axis.set(title=name, xlabel="p95 one-way delay, ms", ylabel="throughput, Mbit/s", xlim=(0, None))
        axis.grid(alpha=0.25)
    _legend(figure, r)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def changes(r: Results, path: pathlib.Path) -> None:
    """What OAL changes against its baseline, in percent, with intervals; diamonds: the oracle."""
    figures = ["throughput_mbps", "delay_mean_ms", "delay_p95_ms", "jitter_ms", "congestion_loss_ratio"]
    figure, axes = plt.subplots(len(figures), 1, figsize=(max(10, 2 + 1.5 * len(r.scenarios)), 2.3 * len(figures)),
                                sharex=True)
    pairs = [(control, queue) for control in CONTROLS for queue in QUEUES]
    for axis, what in zip(axes, figures):
        for n, (control, queue) in enumerate(pairs):
            for at, name in enumerate(r.scenarios):
                x = at + (n - 1.5) * 0.19
                c = verdict.change(r, name, Method(control, queue, "oal"), Method(control, queue), what)
                best = verdict.change(r, name, Method(control, queue, "oracle"), Method(control, queue), what)
                if c:
                    axis.bar([x], [100 * c.value], width=0.17, color=COLOURS[control, queue])
                    if c.low == c.low:
                        axis.plot([x, x], [100 * c.low, 100 * c.high], color="#222", linewidth=1)
                if best:
                    axis.scatter([x], [100 * best.value], marker="D", s=18, facecolors="none", edgecolors="#222",
                                 zorder=3)
        title, more, paper = verdict.COMPARED[what]
        limit = verdict.LIMITS.get(what)
        if limit is not None:
            axis.axhline(100 * limit, color="#c00", linestyle=":", linewidth=1)
        if paper is not None:
            axis.axhline(100 * paper, color="#777", linestyle="--", linewidth=0.8)
        axis.axhline(0, color="#222", linewidth=0.8)
        low, high = axis.get_ylim()
        axis.set(ylabel=f"{title}, %", ylim=(max(low, -110), min(high, 110)))
        axis.grid(axis="y", alpha=0.25)
    axes[-1].set_xticks(range(len(r.scenarios)), r.scenarios)
    axes[0].set_title(
        "OAL against its own baseline (bars, 95 %); diamonds: oracle; dotted: limit of harm; dashed: the paper,"
        " over BBR",
        fontsize=9,
    )
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[pair], label=_pair(*pair)) for pair in pairs]
    figure.legend(handles=handles, loc="lower center", ncol=4, frameon=False)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def pages(r: Results, path: pathlib.Path) -> bool:
    """Completion times of short flows beside long ones; False where no scenario has them."""
    names = [name for name in r.scenarios if any(r.values(name, m, "fct_mean_ms") for m in r.methods)]
    if not names:
        return False
    figure, axes = _grid(len(names), 7, 3.2)
    for axis, name in zip(axes, names):
        known = [
            m for m in sorted(r.methods, key=lambda m: (m.control, m.queue, list(MARKERS).index(m.act)))
            if r.values(name, m, "fct_mean_ms")
        ]
        for what, alpha in (("fct_p95_ms", 0.4), ("fct_mean_ms", 1.0)):
            axis.bar(range(len(known)), [_mean(r, name, m, what) for m in known],
                     color=[COLOURS[m.control, m.queue] for m in known], alpha=alpha, width=0.7)
        axis.set_xticks(range(len(known)), [m.name for m in known], rotation=60, ha="right", fontsize=8)
        axis.set(title=f"{name}: completion of short flows, mean and (pale) p95", ylabel="ms")
        axis.grid(axis="y", alpha=0.25)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True


def draw(r: Results, folder: pathlib.Path) -> list[pathlib.Path]:
    made = [folder / "tradeoff.png", folder / "changes.png"]
    tradeoff(r, made[0])
    changes(r, made[1])
    if pages(r, folder / "pages.png"):
        made.append(folder / "pages.png")
    return made
