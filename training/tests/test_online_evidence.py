"""How often trees no better replace the one in force, over half an hour of looks; how soon better ones do."""

from __future__ import annotations

import numpy as np
from oal_training.online.evidence import Challenge, Evidence
from oal_training.online.settings import load

SHIP = load().ship
ITEMS_A_SECOND, SECONDS = 10, 1800
WINDOW = 3000  # items that candidate and tree in force are compared on: the latest 30 % of 10,000
OLD_MARGIN, OLD_CONFIRM = 0.01, 3


def errors(runs: int, better_by: float = 0.0) -> np.ndarray:
    """By run and item, the fresh tree's error minus that of the tree in force; null: even chances."""
    rng = np.random.default_rng(0)
    length = WINDOW + SECONDS * ITEMS_A_SECOND
    return rng.choice(np.array([-1, 0, 0, 0, 1], np.float32), (runs, length)) - np.float32(better_by)


def fits_in_a_row(difference: np.ndarray) -> bool:
    """What was done before: better by a margin on the latest window, so many looks in a row."""
    total = np.concatenate([[0.0], np.cumsum(difference)])
    ends = np.arange(WINDOW, len(difference), ITEMS_A_SECOND)
    better = (total[ends] - total[ends - WINDOW]) / WINDOW < -OLD_MARGIN
    return bool(np.convolve(better, np.ones(OLD_CONFIRM), "valid").max() >= OLD_CONFIRM)


def seconds_until_shown(difference: np.ndarray, rate: float) -> float:
    """What is done now, infinity when it is never shown: blocks that came after the choice, each used once."""
    evidence = Evidence()
    ts_us = np.arange(len(difference)) * 100_000
    never = np.zeros(len(difference), np.uint8)
    at, block_us = WINDOW * 100_000, int(SHIP.confirm_block_s * 1e6)
    while (until_us := at + 1_200_000 + block_us) <= ts_us[-1]:
        challenge = Challenge(None, at + 1_200_000, until_us)
        evidence.add(float(difference[challenge.items(ts_us, never)].mean()))
        if evidence.enough(rate):
            return (until_us - WINDOW * 100_000) / 1e6
        at = until_us
    return float("inf")


def test_trees_no_better_are_shipped_no_more_often_than_said():
    looks = errors(300)
    old = np.mean([fits_in_a_row(run) for run in looks])
    assert old > 0.5, "fits in a row, on windows that overlap, ship by luck"
    for rate in (SHIP.false_ship_rate, SHIP.drift_false_ship_rate):
        false = np.mean([np.isfinite(seconds_until_shown(run, rate)) for run in looks])
        assert false <= rate, f"said {rate}, seen {false}"


def test_the_rate_holds_for_ever_and_through_every_new_round():
    rng = np.random.default_rng(1)
    shown, rounds = 0, []
    for _ in range(200):
        evidence = Evidence()
        for sign in rng.choice([-1.0, 1.0], 1000):  # three hours in which a tree looks better all the time
            evidence.add(float(sign))
            if evidence.enough(SHIP.drift_false_ship_rate):
                shown += 1
                break
        rounds.append(evidence.round)
    assert shown / 200 <= SHIP.drift_false_ship_rate and max(rounds) > 5


def test_better_trees_are_shown_within_minutes():
    seconds = [seconds_until_shown(run, SHIP.false_ship_rate) for run in errors(50, better_by=0.08)]
    assert np.median(seconds) < 300 and np.isfinite(seconds).all()
    clear = Evidence()
    blocks = 0
    while not clear.enough(SHIP.false_ship_rate):
        clear.add(-0.1)
        blocks += 1
    assert blocks == 8, "as online.yaml says"


def test_alike_blocks_say_nothing_and_lost_stakes_start_anew():
    evidence = Evidence()
    for _ in range(100):
        evidence.add(0.0)
    assert evidence.stake == 1 and evidence.round == 1
    for _ in range(60):
        evidence.add(0.2)
    assert evidence.round > 1 and not evidence.enough(1.0)
