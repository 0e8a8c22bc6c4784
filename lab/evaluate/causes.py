"""lab/evaluate/causes FOLDER: whose diagnosis of losses is right, of the results that a policy's aims kept: the access
point's, and what a sender alone could say, which knows windows and round trips. Shares of lost packets over all seeds;
intervals are of 2,000 draws of seeds with replacement, 95 %."""
import collections
import pathlib
import sys

import numpy as np

from . import diagnosis, sender_class, table
from .results import Results

DRAWS = 2000
#: Of both kinds, so that a scenario is one in which they are to be told apart.
FEW = 20
#: Rivals by what they look at; `rtt` is a threshold of round trip over the least, the best one on all other seeds.
RTT_STEPS = np.round(np.geomspace(1.05, 20, 60), 3)
HEADS = ("balanced accuracy", "queue called queue", "air called air", "queue called air")
NAMES = {
    "cause": "the access point", "always": "always queue", "usual": "what its station loses most by",
    "rtt": "round trip over the least", "kmeans_rtt": "K-means, round trip", "kmeans": "K-means, window, round trip",
    "kmeans_gated": "the same, where its clusters are some"
}


def with_rivals(lines: list[dict]) -> list[dict]:
    """The lines of lost packets that have a row, with the simple rivals' verdicts; each has its seed."""
    out = [dict(one, always="queue") for one in lines if one["truth"] != diagnosis.ELSEWHERE and one["cause"] != "none"]
    most = collections.defaultdict(collections.Counter)
    for one in out:
        most[one["scenario"], one["method"], one["station"]][one["truth"]] += 1
    for one in out:
        one["usual"] = most[one["scenario"], one["method"], one["station"]].most_common(1)[0][0]
        one["over"] = one["rtt_us"] / one["min_rtt_us"] if one["rtt_us"] and one["min_rtt_us"] else None
    for seed in {one["seed"] for one in out}:
        limit = threshold([one for one in out if one["seed"] != seed])
        for one in out:
            if one["seed"] == seed:
                one["rtt"] = None if one["over"] is None else "queue" if one["over"] >= limit else "air"
    return out


def threshold(lines: list[dict]) -> float:
    """From which round trip over the least a loss is the queue's, so that most of both kinds are called right."""
    over = {was: np.array([one["over"] for one in lines if one["truth"] == was and one["over"]])
            for was in diagnosis.TRUTHS}
    if not all(len(values) for values in over.values()):
        return float(RTT_STEPS[0])
    right = [(over["queue"] >= step).mean() + (over["air"] < step).mean() for step in RTT_STEPS]
    return float(RTT_STEPS[int(np.argmax(right))])


def counts(lines: list[dict], column: str, seeds: list[int]) -> np.ndarray:
    """[seed, truth (queue, air), verdict (queue, air, anything else)]."""
    out = np.zeros((len(seeds), 2, 3))
    for one in lines:
        said = diagnosis.TRUTHS.index(one[column]) if one[column] in diagnosis.TRUTHS else 2
        out[seeds.index(one["seed"]), diagnosis.TRUTHS.index(one["truth"]), said] += 1
    return out


def shares(summed: np.ndarray) -> np.ndarray:
    """HEADS of sums [..., truth, verdict]; NaN where there is none of a kind."""
    with np.errstate(invalid="ignore"):
        part = summed / summed.sum(axis=-1, keepdims=True)
    queue, air = part[..., 0, 0], part[..., 1, 1]
    return np.stack([(queue + air) / 2, queue, air, part[..., 0, 1]], axis=-1)


def figures(lines: list[dict], column: str) -> list[tuple[float, float, float]]:
    """(value, low, high) of each of HEADS."""
    seeds = sorted({one["seed"] for one in lines})
    by_seed = counts(lines, column, seeds)
    drawn = np.random.default_rng(0).integers(len(seeds), size=(DRAWS, len(seeds)))
    values, spread = shares(by_seed.sum(axis=0)), shares(by_seed[drawn].sum(axis=1))
    return [(float(v), *(float(x) for x in np.nanpercentile(of, (2.5, 97.5)))) if v == v else (v, v, v)
            for v, of in zip(values, spread.T)]


def cell(found: tuple[float, float, float]) -> str:
    value, low, high = found
    return "–" if value != value else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def lines_of(r: Results) -> list[dict]:
    """Of all cells, with scenario, method and seed."""
    return [{"scenario": c.scenario, "method": c.method.name.partition("+")[0], "seed": c.seed} | one
            for c, found in r.found.items() for one in found.get("losses", [])]


def _row(head: list[str], lines: list[dict], column: str) -> list[str]:
    sums = counts(lines, column, sorted({one["seed"] for one in lines})).sum(axis=(0, 2))
    return [*head, f"{sums[0]:.0f}", f"{sums[1]:.0f}", *map(cell, figures(lines, column))]


def rows(lines: list[dict]) -> dict[str, list[list[str]]]:
    """Tables by heading: who knows it, of the scenarios in which both kinds are lost; where; at which station; and of
    what was not lost here.
    """
    told = with_rivals(lines)
    of = collections.defaultdict(list)
    for one in told:
        of[one["scenario"], one["method"]].append(one)
    hard = [one for mine in of.values()
            if all(sum(one["truth"] == was for one in mine) >= FEW for was in diagnosis.TRUTHS) for one in mine]
    methods = sorted({one["method"] for one in hard})
    head = ["queue drops", "lost on the air", *HEADS]
    who = [["who", "senders, queue", *head]] + [
        _row([NAMES[column], name], [one for one in hard if one["method"] == name], column)
        for name in methods for column in ("cause", "always", "usual", "rtt", *reversed(sender_class.CLASSES))]
    where = [["scenario", "senders, queue", *head]] + [_row(list(key), of[key], "cause") for key in sorted(of)]
    stations = [["scenario", "senders, queue", "station", *head]]
    for key in sorted(of):
        for name in sorted({one["station"] for one in of[key]}):
            stations.append(_row([*key, name], [one for one in of[key] if one["station"] == name], "cause"))
    return {"Who knows it": who, "Where": where, "At which station": stations, "Rows": row_counts(lines)}


def row_counts(lines: list[dict]) -> list[list[str]]:
    """Lost packets without a row, and rows of what was not lost here, by what they say."""
    out = [["scenario", "senders, queue", "lost packets", "without a row", "rows of what was not lost here",
            *(f"of them {cause}" for cause in diagnosis.CAUSES[:4])]]
    for key in sorted({(one["scenario"], one["method"]) for one in lines}):
        mine = [one for one in lines if (one["scenario"], one["method"]) == key]
        lost = [one for one in mine if one["truth"] != diagnosis.ELSEWHERE]
        other = collections.Counter(one["cause"] for one in mine if one["truth"] == diagnosis.ELSEWHERE)
        out.append([*key, str(len(lost)), str(sum(one["cause"] == "none" for one in lost)), str(other.total()),
                    *(str(other[cause]) for cause in diagnosis.CAUSES[:4])])
    return out


def text(r: Results) -> str:
    return "\n".join(f"## {heading}\n\n{table.markdown(found)}" for heading, found in rows(lines_of(r)).items())


if __name__ == "__main__":
    print(text(Results.read(pathlib.Path(sys.argv[1]))))
