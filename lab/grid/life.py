"""Sessions to one destination one after another: a model that chooses from session to session, against a bandit."""
from __future__ import annotations

import numpy as np

from .table import Table

SESSIONS = (2, 5, 10, 20, 50)
LIVES = 20  # of each path
EXPLORED = 0.02  # of a model's sessions, as the notes have it
BANDIT = 0.1


def worths(of: Table, rng: np.random.Generator, algorithm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(worth, repetition) of a session with each life's algorithm, of a repetition that chance draws."""
    repetition = rng.integers(of.repetitions, size=algorithm.shape)
    return of.worth[np.arange(len(algorithm))[:, None], algorithm, repetition], repetition


def explored(rng: np.random.Generator, algorithm: np.ndarray, share: float, number: int) -> np.ndarray:
    return np.where(rng.random(algorithm.shape) < share, rng.integers(number, size=algorithm.shape), algorithm)


def by_model(of: Table, chosen: np.ndarray, start: int, sessions: int, seed: int = 0) -> np.ndarray:
    """path × session: worth, the mean of the lives. What a session is like decides on the next one alone."""
    rng, path = np.random.default_rng(seed), np.arange(len(of.paths))[:, None]
    algorithm, out = np.full((len(of.paths), LIVES), start), []
    for _ in range(sessions):
        worth, repetition = worths(of, rng, algorithm)
        out.append(worth.mean(axis=1))
        algorithm = explored(rng, chosen[path, algorithm, repetition], EXPLORED, len(of.algorithms))
    return np.stack(out, axis=1)


def by_bandit(of: Table, start: int, sessions: int, seed: int = 0) -> np.ndarray:
    """The same of an epsilon-greedy bandit a destination: the best mean so far, now and then any."""
    rng, number = np.random.default_rng(seed), len(of.algorithms)
    algorithm, out = np.full((len(of.paths), LIVES), start), []
    sums, counts = np.zeros((*algorithm.shape, number)), np.zeros((*algorithm.shape, number))
    for _ in range(sessions):
        worth, _ = worths(of, rng, algorithm)
        out.append(worth.mean(axis=1))
        np.put_along_axis(sums, algorithm[..., None],
                          np.take_along_axis(sums, algorithm[..., None], 2) + worth[..., None], 2)
        np.put_along_axis(counts, algorithm[..., None], np.take_along_axis(counts, algorithm[..., None], 2) + 1, 2)
        means = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
        algorithm = explored(rng, means.argmax(axis=2), BANDIT, number)
    return np.stack(out, axis=1)


def lives(of: Table, choices: list[np.ndarray], start: int, fixed: np.ndarray, percent) -> dict:
    """Over the default for all sessions, the mean of so many first sessions: model, bandit, best fixed algorithm."""
    longest = max(SESSIONS)
    model = np.mean([by_model(of, c, start, longest, seed) for seed, c in enumerate(choices)], axis=0)
    bandit = np.mean([by_bandit(of, start, longest, seed) for seed in range(len(choices))], axis=0)
    default = of.worth[:, start].mean(axis=1)
    out = {}
    for number in SESSIONS:
        first = {name: worth[:, :number].mean(axis=1) for name, worth in (("model", model), ("bandit", bandit))}
        out[str(number)] = {**{name: percent(worth - default) for name, worth in first.items()},
                            "best fixed": percent(fixed.mean(axis=1) - default),
                            "model over bandit": percent(first["model"] - first["bandit"]),
                            "model over best fixed": percent(first["model"] - fixed.mean(axis=1))}
    return out
