"""What a corpus holds, by part: AP-runs, seconds, items, classes, onsets and their episodes, and columns that never
vary.
"""
import json
import pathlib
from dataclasses import dataclass, field

import numpy as np

#: Onset items this close together are of one episode: the length of a label window.
EPISODE_US = 1_000_000


@dataclass
class Part:
    """Of a part of the corpus, summed over its AP-runs."""

    runs: set = field(default_factory=set)
    sites: set = field(default_factory=set)
    ap_runs: int = 0
    seconds: float = 0
    items: int = 0
    classes: np.ndarray = field(default_factory=lambda: np.zeros(4, int))
    onset_items: int = 0
    episodes: int = 0
    same: int = 0  # items whose class is that of now, of those whose now is known
    known: int = 0


def episodes(ts_us: np.ndarray) -> int:
    """Of onset items of one AP-run, in order of time."""
    return int(1 + (np.diff(ts_us) > EPISODE_US).sum()) if len(ts_us) else 0


def of(folder: pathlib.Path, log=lambda *_: None) -> tuple[dict[str, Part], list[str], tuple[str, ...]]:
    """(by part, features that have one value in all of it, all features)."""
    from oal_training.stored import parquet

    found: dict[str, Part] = {}
    low = high = names = None
    for one in json.loads((folder / "corpus.json").read_text())["ap_runs"]:
        items = parquet.read(folder / one["file"], log=log)
        p = found.setdefault(one["part"], Part())
        onset = items.candidates & items.congested
        p.runs.add(one["run"])
        p.sites.add(one["site"])
        p.ap_runs += 1
        p.seconds += float(items.ts_us[-1] - items.ts_us[0]) / 1e6
        p.items += len(items)
        p.classes += np.bincount(items.y, minlength=4)
        p.onset_items += int(onset.sum())
        p.episodes += episodes(items.ts_us[onset])
        p.known += int((items.now >= 0).sum())
        p.same += int(((items.now >= 0) & (items.now == items.y)).sum())
        names = items.names
        x = np.where(np.isnan(items.x), np.inf, items.x)  # missing and there are two values
        low = x.min(axis=0) if low is None else np.minimum(low, x.min(axis=0))
        high = x.max(axis=0) if high is None else np.maximum(high, x.max(axis=0))
    return found, [name for name, a, b in zip(names, low, high) if a == b], names


def table(found: dict[str, Part]) -> str:
    """As Markdown."""
    rows = ["| part | sites | runs | AP-runs | seconds | items | Good / Acceptable / Poor / Bad % | same as now % |"
            " onset items | onset episodes |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    whole = Part()
    for name, p in [*found.items(), ("all", whole)]:
        if p is not whole:
            whole.runs |= p.runs
            whole.sites |= p.sites
            for key in ("ap_runs", "seconds", "items", "classes", "onset_items", "episodes", "same", "known"):
                setattr(whole, key, getattr(whole, key) + getattr(p, key))
        shares = " / ".join(f"{100 * share:.0f}" for share in p.classes / max(1, p.items))
        rows.append(f"| {name} | {len(p.sites)} | {len(p.runs)} | {p.ap_runs} | {p.seconds:.0f} | {p.items} |"
                    f" {shares} | {100 * p.same / max(1, p.known):.0f} | {p.onset_items} | {p.episodes} |")
    return "\n".join(rows)
