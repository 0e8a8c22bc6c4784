"""What a choice by an earlier session is worth behind access points: of kept cells of lab/evaluate, in which all
senders have the same congestion control, flow by flow.

A path is a scenario's flow over a queue, a session that of one seed. A model sees the session of a seed and is judged
by that of its pair (chosen.seed_before), so that luck is no gain. Gains are logarithms of ratios, the mean over flows,
then over scenarios; intervals are Student's over seeds, and `percent` makes them percent of the geometric mean."""
from __future__ import annotations

import collections
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from evaluate import chosen, sessions, spread
from evaluate.results import Results
from oal_training.cc_select import plain, trees
from oal_training.cc_select.statistics import ALL, share, statistics
from oal_training.cc_select.trees import Lesson

from . import report

PAGE = "choices.md"
SET, BESIDE = "judge", "choose"
FIXED = ("westwood", "cubic", "reno", "vegas", "illinois", "bbr")
#: The senders of policies/loss-cause and learned-ecn, and DCTCP, which has its marks from FQ-CoDel alone.
MORE = ("lc_told", "le_wait", "dctcp")
STARTS = ("cubic", "bbr")
QUEUES = ("fifo", "fq")
#: What an access point knows of a station, as a model takes it.
LAST_HOP = ("ap_link_mbps", "ap_retry_ratio", "ap_failed_ratio", "ap_airtime_share", "ap_air_share", "ap_busy_ratio")
SAID = {"speed": "speed alone", "queue": "a price on queueing and repetitions"}
QUEUE_NAMES = {"fifo": "FIFO", "fq": "FQ-CoDel"}


def last_hop(found: pd.DataFrame) -> pd.DataFrame:
    """LAST_HOP of each session; a share of nothing is 0."""
    lost = found.ap_lost_air + found.ap_lost_queue
    return pd.DataFrame({
        "ap_link_mbps": found.ap_link_mbps, "ap_retry_ratio": share(found.ap_tx_retries, found.ap_tx_packets),
        "ap_failed_ratio": share(found.ap_msdu_failed, found.ap_tx_packets),
        "ap_airtime_share": found.ap_airtime_us / found.seen_us, "ap_air_share": share(found.ap_lost_air, lost),
        "ap_busy_ratio": share(found.ap_busy_ms, found.ap_survey_ms)}, index=found.index)


@dataclass(frozen=True)
class Sessions:
    """Arrays of path × algorithm × seed; algorithms that a queue was not played with are NaN there."""

    paths: pd.DataFrame  #: scenario, queue, flow, ap: a row a path
    algorithms: tuple[str, ...]
    seeds: tuple[int, ...]
    worth: np.ndarray
    statistics: np.ndarray  #: with (*ALL, *LAST_HOP) as a fourth axis

    def only(self, algorithms: tuple[str, ...]) -> Sessions:
        which = [self.algorithms.index(name) for name in algorithms]
        return Sessions(self.paths, algorithms, self.seeds, self.worth[:, which], self.statistics[:, which])

    @property
    def pair(self) -> np.ndarray:
        """Of each seed, where its pair is."""
        return np.array([self.seeds.index(chosen.seed_before(seed)) for seed in self.seeds])

    @property
    def next(self) -> np.ndarray:
        """path × algorithm × seed: what the session of the pair is worth."""
        return self.worth[:, :, self.pair]

    def figure(self, gains: np.ndarray, where: np.ndarray | None = None) -> list[float]:
        """[value, low, high] in percent, of gains of path × seed: mean over the flows of a scenario and queue, then
        over these; seeds are the draws.
        """
        rows = np.ones(len(self.paths), bool) if where is None else where
        groups = self.paths[rows].groupby(["scenario", "queue"]).indices.values()
        f = spread.mean(list(np.mean([gains[rows][some].mean(axis=0) for some in groups], axis=0)))
        return [100 * math.expm1(v) for v in (f.value, f.low, f.high)]


def table(r: Results, utility: str) -> Sessions:
    """Of the cells of SET. ValueError where a cell of an algorithm that was played over a queue is missing."""
    found = pd.DataFrame([row for row in r.of_cells("sessions") if row["set"] == SET])
    base = found.method.str.partition("-")
    found = found.assign(control=base[0], queue=base[2])
    found = found[found.control.isin((*FIXED, *MORE))].reset_index(drop=True)
    if not found.apply(sessions.known, axis=1).all():
        raise ValueError("a session without a round trip")
    found["worth"] = sessions.utilities()[utility].of(found)
    values = pd.concat([statistics(found), last_hop(found)], axis=1)[[*ALL, *LAST_HOP]]
    keys = ["scenario", "queue", "flow"]
    paths = found.drop_duplicates(keys).sort_values(keys)[[*keys, "ap"]].reset_index(drop=True)
    seeds, algorithms = tuple(sorted(found.seed.unique())), tuple(c for c in (*FIXED, *MORE) if c in set(found.control))
    at = (found.merge(paths.reset_index(), on=keys, how="left")["index"].to_numpy(),
          np.array([algorithms.index(c) for c in found.control]), np.array([seeds.index(s) for s in found.seed]))
    worth = np.full((len(paths), len(algorithms), len(seeds)), np.nan)
    stats = np.full((*worth.shape, len(values.columns)), np.nan)
    worth[at], stats[at] = found.worth, values
    holes = np.isnan(worth)
    if (holes.any(axis=2) != holes.all(axis=2)).any() or holes[:, [algorithms.index(c) for c in FIXED]].any():
        raise ValueError("a cell is missing")
    return Sessions(paths, algorithms, seeds, worth, stats)


def best_fixed(of: Sessions, fold: np.ndarray) -> np.ndarray:
    """Of each path the algorithm that is best on the mean over the paths of the other folds."""
    out = np.empty(len(of.paths), int)
    for n in np.unique(fold):
        out[fold == n] = np.nan_to_num(of.worth[fold != n].mean(axis=(0, 2)), nan=-np.inf).argmax()
    return out


def taken(of: Sessions, choice: np.ndarray) -> np.ndarray:
    """path × seed: what a choice (path × seed of columns) brings in the session of the pair."""
    return np.take_along_axis(of.next, choice[:, None, :], axis=1)[:, 0]


def committed(of: Sessions, model: dict, start: str) -> np.ndarray:
    """path × seed: what the committed trees choose after a session with `start`, by the sender's figures."""
    s = of.algorithms.index(start)
    return np.array([[of.algorithms.index(plain.choose(model, start, dict(zip(ALL, stats[:len(ALL)]))))
                      for stats in each] for each in of.statistics[:, s]])


def others(of: Sessions) -> np.ndarray:
    """path × algorithm × seed: the mean worth over all seeds but this one, which a model learns from."""
    return (of.worth.sum(axis=2, keepdims=True) - of.worth) / (len(of.seeds) - 1)


def fitted(of: Sessions, start: str, fold: np.ndarray, columns: tuple[str, ...]) -> np.ndarray:
    """path × seed: what trees choose that learned from the paths of the other folds. Both queues of a flow are on the
    same side.
    """
    s, which = of.algorithms.index(start), [(*ALL, *LAST_HOP).index(name) for name in columns]
    number = len(of.seeds)
    stats = of.statistics[:, s][:, :, which].reshape(-1, len(which))
    worth = others(of).transpose(0, 2, 1).reshape(-1, len(of.algorithms))
    flow = np.repeat(of.paths.groupby(["scenario", "flow"]).ngroup().to_numpy(), number)
    every, out = np.repeat(fold, number), np.empty(len(worth), int)
    lesson = Lesson(s, stats, worth, flow, np.zeros((len(worth), 1)))
    for n in np.unique(fold):
        model = trees.fitted("gains", lesson.part(np.flatnonzero(every != n)))
        out[every == n] = model.choose(stats[every == n])
    return out.reshape(-1, number)


def scenario_folds(of: Sessions) -> np.ndarray:
    return np.unique(of.paths.scenario, return_inverse=True)[1]


def ap_folds(of: Sessions) -> np.ndarray:
    """Access points of the scenarios: the flows of one on the same side."""
    return of.paths.groupby(["scenario", "ap"]).ngroup().to_numpy()


def splits(of: Sessions) -> dict[str, np.ndarray]:
    """Folds, the strictest first."""
    out = {"scenario": scenario_folds(of), "access point": ap_folds(of)}
    return {name: fold for name, fold in out.items() if len(np.unique(fold)) > 1}


def of_queue(of: Sessions) -> dict[str, np.ndarray]:
    return {"all": np.ones(len(of.paths), bool)} | {name: (of.paths.queue == name).to_numpy() for name in QUEUES}


def shares(of: Sessions, choice: np.ndarray, where: np.ndarray) -> dict[str, float]:
    """Of a choice, how often each algorithm."""
    counts = collections.Counter(choice[where].ravel().tolist())
    return {of.algorithms[n]: round(count / counts.total(), 3) for n, count in counts.most_common()}


def played(r: Results, control: str, utility: str) -> dict[str, dict]:
    """Of cells in which all senders chose, by queue: over each algorithm for all, and what was chosen."""
    found = pd.DataFrame([row for row in r.of_cells("sessions") if row["set"] == SET])
    base = found.method.str.partition("-")
    found = found.assign(control=base[0], queue=base[2])
    found["worth"] = sessions.utilities()[utility].of(found)
    means = found.groupby(["queue", "control", "scenario", "seed"]).worth.mean()
    out = {}
    for queue in QUEUES:
        if (queue, control) not in means.index:
            continue
        mine = means[queue, control].unstack("scenario")
        over = {}
        for other in FIXED:
            f = spread.mean(list((mine - means[queue, other].unstack("scenario")).mean(axis=1)))
            over[other] = [100 * math.expm1(v) for v in (f.value, f.low, f.high)]
        what = found[(found.queue == queue) & (found.control == control)].cc.value_counts(normalize=True)
        out[queue] = {"over": over, "chosen": what.round(3).to_dict()}
    return out


def beside(r: Results) -> dict[str, dict[str, dict[str, float]]]:
    """Of two servers at one access point, by queue and utility: what the committed trees choose after CUBIC."""
    found = pd.DataFrame([row for row in r.of_cells("sessions") if row["set"] == BESIDE])
    out = {}
    for queue in QUEUES:
        mine = found[(found.method == f"cubic-{queue}") & (found.flow == 0)]
        out[queue] = {name: pd.Series([chosen.by_trees(model, row) for row in mine.to_dict("records")]).value_counts(
            normalize=True).round(3).to_dict() for name, model in chosen.trees().items()}
    return out


def whole(r: Results) -> dict:
    """All figures, by utility; and of two servers at one access point."""
    return {**{name: of_utility(r, name) for name in sessions.utilities()}, "beside": beside(r)}


def of_utility(r: Results, utility: str) -> dict:
    every = table(r, utility)
    of = every.only(FIXED)
    now, cubic = of.next, of.algorithms.index("cubic")
    queues, by = of_queue(of), splits(of)
    folds = next(iter(by.values()))
    fixed = np.take_along_axis(now, best_fixed(of, folds)[:, None, None].repeat(len(of.seeds), 2), axis=1)[:, 0]
    hindsight = now.max(axis=1)
    tried = taken(of, others(of).argmax(axis=1)[:, of.pair])
    out = {"sessions": int(np.isfinite(every.worth).sum()), "seeds": len(of.seeds),
           "scenarios": sorted(of.paths.scenario.unique()),
           "best fixed": sorted({of.algorithms[n] for n in best_fixed(of, folds)}),
           "winners": {name: {cc: round(float((of.worth.mean(axis=2).argmax(axis=1)[rows] == n).mean()), 3)
                              for n, cc in enumerate(of.algorithms)} for name, rows in queues.items()}}
    out["fixed"] = {name: {cc: every.figure(every.next[:, n] - now[:, cubic], rows)
                           for n, cc in enumerate(every.algorithms) if np.isfinite(every.worth[rows, n]).all()}
                    for name, rows in queues.items()}
    out["committed"] = {}
    for start in STARTS:
        s = of.algorithms.index(start)
        choice = committed(of, chosen.trees()[utility], start)
        mine = taken(of, choice)
        out["committed"][start] = {name: {
            "chosen": shares(of, choice, rows), "over start": of.figure(mine - now[:, s], rows),
            "possible": of.figure(hindsight - now[:, s], rows), "over best fixed": of.figure(mine - fixed, rows),
            "over": {cc: of.figure(mine - now[:, n], rows) for n, cc in enumerate(of.algorithms)},
            "tried over it": of.figure(tried - mine, rows), "oracle over it": of.figure(hindsight - mine, rows)}
            for name, rows in queues.items()}
    out["played"] = played(r, f"cs_{utility}", utility)
    out["last hop"] = {split: {start: held_out(of, start, fold, fixed) for start in STARTS}
                       for split, fold in by.items()}
    out["candidates"] = candidates(every)
    return out


def held_out(of: Sessions, start: str, fold: np.ndarray, fixed: np.ndarray) -> dict:
    """Trees with and without what the access point knows, on paths that they have not learned from."""
    s = of.algorithms.index(start)
    mine = {name: fitted(of, start, fold, columns) for name, columns in (("sender", ALL), ("both", (*ALL, *LAST_HOP)))}
    worth = {name: taken(of, choice) for name, choice in mine.items()}
    rows = np.ones(len(of.paths), bool)
    return {**{name: {"over start": of.figure(w - of.next[:, s]), "over best fixed": of.figure(w - fixed),
                      "chosen": shares(of, mine[name], rows)} for name, w in worth.items()},
            "added": of.figure(worth["both"] - worth["sender"])}


def offered(every: Sessions, queue: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """The paths over a queue that any of MORE was played on, and those of MORE that were played on them all."""
    there = np.isfinite(every.worth).all(axis=2)
    more = [n for n, c in enumerate(every.algorithms) if c in MORE]
    rows = (every.paths.queue == queue).to_numpy() & there[:, more].any(axis=1)
    return rows, tuple(every.algorithms[n] for n in more if rows.any() and there[rows, n].all())


def candidates(every: Sessions) -> dict:
    """By queue, what the best one of MORE that was played there, and a choice among all, add to a choice among FIXED:
    each tried at all other seeds, and trees on scenarios that they have not learned from.
    """
    out = {}
    for queue in QUEUES:
        rows, more = offered(every, queue)
        if not more:
            continue
        part = Sessions(every.paths[rows].reset_index(drop=True), every.algorithms, every.seeds, every.worth[rows],
                        every.statistics[rows])
        few, many = part.only(FIXED), part.only((*FIXED, *more))
        tried = [taken(of, others(of).argmax(axis=1)[:, of.pair]) for of in (few, many)]
        fold = next(iter(splits(few).values()))
        told = [taken(of, fitted(of, "cubic", fold, ALL)) for of in (few, many)]
        fixed = [np.take_along_axis(of.next, best_fixed(of, fold)[:, None, None].repeat(len(of.seeds), 2), axis=1)[:, 0]
                 for of in (few, many)]
        best = np.array(many.algorithms)[many.worth.mean(axis=2).argmax(axis=1)]
        cubic = many.next[:, many.algorithms.index("cubic")]
        out[queue] = {"scenarios": sorted(many.paths.scenario.unique()), "offered": list(more), "over cubic": {
            c: many.figure(many.next[:, many.algorithms.index(c)] - cubic) for c in more},
                      "best on": {c: round(float((best == c).mean()), 3) for c in more},
                      "tried": few.figure(tried[1] - tried[0]), "trees": few.figure(told[1] - told[0]),
                      "best fixed": few.figure(fixed[1] - fixed[0]),
                      "trees over best fixed": few.figure(told[1] - fixed[1])}
    return out


def of_shares(given: dict[str, float]) -> str:
    return ", ".join(f"{report.named(cc)} {100 * part:.0f} %" for cc, part in given.items())


def tables(found: dict) -> dict[str, list[list[str]]]:
    """By heading."""
    names = list(found["beside"][QUEUES[0]])
    out = {"What the committed trees choose beside another server": [
        ["queue", *(SAID[name] for name in names)],
        *([QUEUE_NAMES[queue], *(of_shares(row[name]) for name in names)] for queue, row in found["beside"].items())]}
    for utility, j in ((name, j) for name, j in found.items() if name != "beside"):
        said = SAID[utility]
        names = list(dict.fromkeys(cc for row in j["fixed"].values() for cc in row if cc != "cubic"))
        out[f"Each for all, over CUBIC for all: {said}"] = [["queue", *map(report.named, names)], *(
            [QUEUE_NAMES.get(queue, "both"), *(report.signed(row[cc]) if cc in row else "–" for cc in names)]
            for queue, row in j["fixed"].items())]
        rows = [["first session", "queue", "chosen", "over it", "possible", "over the best fixed one",
                 "each tried, over the choice"]]
        for start, by in j["committed"].items():
            rows += [[report.named(start), QUEUE_NAMES.get(queue, "both"), of_shares(row["chosen"]),
                      *(report.signed(row[key]) for key in ("over start", "possible", "over best fixed",
                                                            "tried over it"))] for queue, row in by.items()]
        out[f"What the committed trees choose: {said}"] = rows
        if j["played"]:
            out[f"All senders choose, played: {said}"] = [["queue", "chosen", *(f"over {report.named(c)}" for c in
                                                                                FIXED)], *(
                [QUEUE_NAMES[queue], of_shares(row["chosen"]), *(report.signed(row["over"][cc]) for cc in FIXED)]
                for queue, row in j["played"].items())]
        rows = [["held out", "first session", "by the sender, over the best fixed one", "by the access point, too",
                 "added by the access point", "verdict"]]
        for split, by in j["last hop"].items():
            rows += [[split, report.named(start), report.signed(row["sender"]["over best fixed"]),
                      report.signed(row["both"]["over best fixed"]), report.signed(row["added"]), kept(row["added"])]
                     for start, row in by.items()]
        out[f"With and without the access point's figures: {said}"] = rows
        if j["candidates"]:
            out[f"With more candidates: {said}"] = [
                ["queue", "scenarios", "offered: over CUBIC for all; best on", "each tried: added", "trees: added",
                 "best fixed one: added", "trees over the best fixed one"], *(
                    [QUEUE_NAMES[queue], ", ".join(row["scenarios"]), ", ".join(
                        f"`{c}` {report.signed(row['over cubic'][c])}; {100 * row['best on'][c]:.0f} %"
                        for c in row["offered"]),
                     *(report.signed(row[key]) for key in ("tried", "trees", "best fixed", "trees over best fixed"))]
                    for queue, row in j["candidates"].items())]
    return out


def kept(added: list[float]) -> str:
    """Figures of the access point stay where they add by the whole interval."""
    return "better" if added[1] > 0 else "worse: dropped" if added[2] < 0 else "no gain: dropped"


def page(found: dict) -> str:
    return "\n".join(f"## {heading}\n\n{report.markdown(rows)}" for heading, rows in tables(found).items())
