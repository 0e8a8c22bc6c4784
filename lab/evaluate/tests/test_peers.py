"""What neighbours' figures add: the columns that are filled, on items whose answer is known."""
import json
import pathlib
import sys

import numpy as np
from evaluate import peers, spread
from oal_registry import programs

EVALUATE = pathlib.Path(__file__).resolve().parents[1]

FEATURES = programs.by_name()["congestion"].features
AIRTIME, BACKLOG = (FEATURES.index(name) for name in ("tx_airtime_us", "backlog_bytes"))
PEER_AIRTIME, PEER_BACKLOG = (FEATURES.index(name) for name in ("peer_airtime_permille", "peer_backlog_bytes"))


def world(n: int = 200, runs=(1, 2, 3)) -> dict[str, np.ndarray]:
    """Two access points, ten items a second. What the first's backlog is now is the second's loss a moment later."""
    chance, rows = np.random.default_rng(0), []
    for run in runs:
        backlog = np.repeat(chance.integers(0, 2, n // 10), 10) * 9000.0
        for ap in (0, 1):
            for at in range(n):
                values = np.full(len(FEATURES), np.nan)
                values[AIRTIME], values[BACKLOG] = 100 * (ap + 1), backlog[at] if ap == 0 else chance.integers(0, 9000)
                rows.append((run, ap, 1_000_000 + at * 100_000 + ap * 30_000, int(chance.random() < 0.1),
                             3 if ap == 1 and backlog[at] else 0, values))
    return {name: np.array(column) for name, column in
            zip(("run", "ap", "ts", "now", "truth", "values"), zip(*rows))}


def test_the_columns_are_the_others_at_that_age():
    rows = world()
    filled = peers.told(rows, FEATURES, 0)
    second = (rows["run"] == 2) & (rows["ap"] == 1)
    first = (rows["run"] == 2) & (rows["ap"] == 0)
    assert (filled[second, PEER_BACKLOG] == rows["values"][first, BACKLOG]).all()
    assert (filled[second, PEER_AIRTIME] == 100).all() and (filled[first, PEER_AIRTIME][1:] == 200).all()
    older = peers.told(rows, FEATURES, 5_000_000)[second, PEER_BACKLOG]
    assert np.isnan(older[:49]).all() and (older[50:] == rows["values"][first, BACKLOG][:150]).all()
    unfilled = [i for i in range(len(FEATURES)) if FEATURES[i] not in peers.FROM]
    assert np.array_equal(filled[:, unfilled], rows["values"][:, unfilled], equal_nan=True)


def test_what_only_a_neighbour_knows_is_worth_something_and_noise_is_not(monkeypatch):
    rows = world()
    tree = peers.models()["tree of 8 leaves"]
    without = [peers.judge(tree, rows["values"], rows, run) for run in (1, 2, 3)]
    known = peers.told(rows, FEATURES, 0)
    with_them = [peers.judge(tree, known, rows, run) for run in (1, 2, 3)]
    assert min(right for right, _ in with_them) > 0.95 > max(right for right, _ in without) + 0.05
    assert min(ap for _, ap in with_them) > max(ap for _, ap in without) + 0.2


def test_the_page_has_the_committed_table(monkeypatch, capsys):
    page = (EVALUATE / "README.md").read_text()
    monkeypatch.setattr(sys, "argv", ["peers", "--from", str(EVALUATE / "results/peers.json")])
    assert peers.main() == 0
    table = capsys.readouterr().out
    assert table.strip() in page
    found = json.loads((EVALUATE / "results/peers.json").read_text())
    persistence = f"{found['persistence_right']:.3f}".lstrip("0")
    assert (f"{found['items']:,} items with {found['onsets']} onsets, persistence right {persistence}"
            in " ".join(page.split()))
    assert found["contexts"] == ["judge/web/cubic-fifo", "judge/churn/cubic-fifo"]
    for variant in peers.AGES_US:
        for figure in ("right", "onset_ap"):
            tree = found["models"]["tree of 8 leaves"]
            more = spread.mean([a - b for a, b in zip(tree[variant][figure], tree["without"][figure])])
            assert more.low < 0 < more.high, "the page says that a tree gains nothing"
