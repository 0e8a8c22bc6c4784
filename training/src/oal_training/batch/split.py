"""Which items a model is fitted on, and which it is judged on. By time, by access point, or both; never by row.

Neighbouring items share most of their label window, so a random split lets a model look its answers up. Here a test
part begins at a whole minute (of short data: a whole ten seconds or second), and the items whose label is not settled
by then belong to neither side. Access points that share a channel see the same seconds: where one is judged by a model
of others, those others' items of that time, and of some seconds around it, are not learned from either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oal_training.errors import TrainingError
from oal_training.stored.items import Items

KINDS = ("time", "group", "group_time", "run")
PARTS = ("train", "validation", "test")
ALIGNMENTS_US = (60_000_000, 10_000_000, 1_000_000)


@dataclass(frozen=True, eq=False)
class Fold:
    """Indices into the items; every item is in the test part of at most one fold of a split."""

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class SplitSpec:
    """kind: one of KINDS; test_share: latest part of the items that is judged (kinds with time); folds: parts that it
    is judged in, each with everything before it to learn from; groups: number of folds over access points (kind group)
    or over runs (kind run).
    """

    kind: str = "time"
    test_share: float = 0.5
    folds: int = 4
    groups: int = 5
    apart_s: float = 5.0

    def __post_init__(self):
        if self.kind not in KINDS:
            raise TrainingError(f"split {self.kind!r} is none of {', '.join(KINDS)}")
        if not 0.05 <= self.test_share <= 0.9 or not 1 <= self.folds <= 50 or not 2 <= self.groups <= 100:
            raise TrainingError("a split needs test_share 0.05…0.9, folds 1…50 and groups 2…100")
        if not 0 <= self.apart_s <= 3600:
            raise TrainingError("a split needs apart_s 0…3600")


def cuts(items: Items, spec: SplitSpec) -> tuple[list[int], int]:
    """Instants (µs) at which test parts begin, then the end of the last; and what they are aligned to."""
    shares = 1 - spec.test_share + spec.test_share * np.arange(spec.folds) / spec.folds
    ideal = np.quantile(items.ts_us, shares)
    end = int(items.ts_us.max()) + 1
    for align_us in ALIGNMENTS_US:
        at = sorted({int((t + align_us // 2) // align_us) * align_us for t in ideal})
        if (
            len(at) == spec.folds
            and at[0] - items.ts_us.min() >= items.embargo_us + align_us // 2
            and end - at[-1] >= align_us // 2
        ):
            return [*at, end], align_us
    raise TrainingError(
        f"{(end - items.ts_us.min()) / 1e6:.0f} s of items are too few for {spec.folds} folds by time; lower"
        " split.folds or take a longer range"
    )


def stretches(items: Items, spec: SplitSpec) -> list[tuple[int, int]]:
    """Parts of the whole time of the items, about equally full: [begin, end) in µs, cut at whole minutes where that
    leaves `folds` of them (kind group: at least two, or nothing would be left to learn from).
    """
    n = max(2, spec.folds)
    ideal, end = np.quantile(items.ts_us, np.arange(1, n) / n), int(items.ts_us.max()) + 1
    begin = int(items.ts_us.min())
    for align_us in ALIGNMENTS_US:
        at = [begin, *sorted({int((t + align_us // 2) // align_us) * align_us for t in ideal}), end]
        if len(at) == n + 1 and all(b - a >= align_us // 2 for a, b in zip(at, at[1:])):
            return list(zip(at, at[1:]))
    raise TrainingError(
        f"{(end - begin) / 1e6:.0f} s of items are too few for {n} parts of time by AP; lower split.folds or take a"
        " longer range"
    )


def apart(items: Items, begin: int, end: int, apart_us: int) -> np.ndarray:
    """Mask of the items whose label windows, and `apart_us` more, touch none of [begin, end) and its labels."""
    reach = items.embargo_us + apart_us
    return (items.ts_us + reach <= begin) | (items.ts_us >= end + reach)


def settled(items: Items, at_us: int) -> np.ndarray:
    """Mask of the items whose label window ended before `at_us`."""
    return items.ts_us + items.embargo_us <= at_us


def group_parts(items: Items, n: int) -> list[list[str]]:
    """Access points in at most n parts with about equally many items."""
    names, counts = np.unique(items.group, return_counts=True)
    parts: list[list[str]] = [[] for _ in range(min(n, len(names)))]
    load = np.zeros(len(parts))
    for name, count in sorted(zip(names.tolist(), counts.tolist()), key=lambda p: (-p[1], p[0])):
        lightest = int(np.argmin(load))
        parts[lightest].append(name)
        load[lightest] += count
    return parts


def runs(items: Items, apart_us: int) -> list[list[str]]:
    """Access points by run: those whose times overlap, or come nearer than `apart_us` and the labels, are of one."""
    spans = []
    for name in items.groups:
        ts = items.ts_us[items.group == name]
        spans.append((int(ts.min()), int(ts.max()) + items.embargo_us + apart_us, name))
    found: list[list[str]] = []
    end = None
    for first, last, name in sorted(spans):
        if end is None or first >= end:
            found.append([])
            end = last
        found[-1].append(name)
        end = max(end, last)
    return found


def by_run(items: Items, spec: SplitSpec) -> list[Fold]:
    """Each run judged by a model of the others, in at most `groups` folds with about equally many items. Runs have no
    second in common, so all items of the others are learned from.
    """
    every = runs(items, int(spec.apart_s * 1e6))
    if len(every) < 2:
        raise TrainingError("items of one run cannot be split by run")
    size = {name: int(np.sum(items.group == name)) for name in items.groups}
    parts: list[list[str]] = [[] for _ in range(min(spec.groups, len(every)))]
    for run in sorted(every, key=lambda names: (-sum(size[n] for n in names), names)):
        min(parts, key=lambda part: sum(size[n] for n in part)).extend(run)
    masks = [np.isin(items.group, part) for part in parts]
    return [Fold(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]


def part_of(group: str) -> str:
    """Part of the corpus that an AP-run is of, by its name (lab/corpus); "" for none."""
    return next((part for part in PARTS if group.startswith(part)), "")


def by_part(items: Items, judged: str) -> Fold:
    """The corpus's own parts: what is judged on `validation` learns from `train`, on `test` from both."""
    part = np.array([part_of(name) for name in items.group.tolist()])
    learned = PARTS[: PARTS.index(judged)]
    return _usable([Fold(np.flatnonzero(np.isin(part, learned)), np.flatnonzero(part == judged))])[0]


def folds(items: Items, spec: SplitSpec) -> list[Fold]:
    """The folds of a split; TrainingError when the items do not allow it."""
    if spec.kind == "run":
        return by_run(items, spec)
    if spec.kind != "time" and len(items.groups) < 2:
        raise TrainingError("items of one AP cannot be split by AP")
    if spec.kind == "group":
        masks = [np.isin(items.group, part) for part in group_parts(items, spec.groups)]
        found = []
        for begin, end in stretches(items, spec):
            then = (items.ts_us >= begin) & (items.ts_us < end)
            away = apart(items, begin, end, int(spec.apart_s * 1e6))
            found += [Fold(np.flatnonzero(~mask & away), np.flatnonzero(mask & then)) for mask in masks]
        return _usable(found)
    edges, _ = cuts(items, spec)
    found = []
    for begin, end in zip(edges, edges[1:]):
        early, late = settled(items, begin), (items.ts_us >= begin) & (items.ts_us < end)
        if spec.kind == "time":
            found.append(Fold(np.flatnonzero(early), np.flatnonzero(late)))
            continue
        for part in group_parts(items, spec.groups):
            mask = np.isin(items.group, part)
            found.append(Fold(np.flatnonzero(early & ~mask), np.flatnonzero(late & mask)))
    return _usable(found)


def _usable(folds_: list[Fold]) -> list[Fold]:
    """Those that have something to learn from and something to judge; TrainingError when none has."""
    found = [fold for fold in folds_ if len(fold.train) and len(fold.test)]
    if not found:
        raise TrainingError("no items are left to learn from beside those judged; take a longer range")
    return found


def tail(items: Items, share: float = 0.25, by: str = "time") -> tuple[np.ndarray, np.ndarray]:
    """Indices of an earlier and a later part (or of two sets of APs) of training items, for calibration and choices
    within them.
    """
    if by == "group" and len(items.groups) >= 2:
        held = group_parts(items, max(2, round(1 / share)))[-1]
        mask = np.isin(items.group, held)
        return np.flatnonzero(~mask), np.flatnonzero(mask)
    at = int(np.quantile(items.ts_us, 1 - share))
    return np.flatnonzero(settled(items, at)), np.flatnonzero(items.ts_us >= at)


def name(items: Items, spec: SplitSpec) -> str:
    """The way of splitting in one line, for reports."""
    if spec.kind == "run":
        number = len(runs(items, int(spec.apart_s * 1e6)))
        return f"leave-run-out, {min(spec.groups, number)} folds of {number} runs with {len(items.groups)} AP-runs"
    if spec.kind == "group":
        return (
            f"leave-AP-out, {len(group_parts(items, spec.groups))} folds of {len(items.groups)} APs in"
            f" {len(stretches(items, spec))} parts of time; nothing is learned within {spec.apart_s:g} s of the labels"
            " judged"
        )
    edges, align_us = cuts(items, spec)
    line = (
        f"by time: {len(edges) - 1} test parts in the last {(edges[-1] - edges[0]) / 1e6:.0f} s of"
        f" {(edges[-1] - int(items.ts_us.min())) / 1e6:.0f} s, each after all its training items,"
        f" {items.embargo_us / 1e6:g} s between (horizon + label window), cut at whole {align_us // 1_000_000} s"
    )
    return line if spec.kind == "time" else f"{line}; and by AP: no AP of a test part is trained on"
