"""Items of a made-up AP for tests: load that wanders, congestion that follows from it some seconds later.

Never a source of reported figures.
"""

from __future__ import annotations

import functools

import numpy as np
from oal_schema.item import MISSING, Item

BOUNDS = np.array([0.01, 0.05, 0.12])
START_US = 1_800_000_000_000_000


def items(
    n: int,
    ap_id: str = "ap-1",
    seed: int = 0,
    features: int = 45,
    feature_hash: int = 7,
    flip: bool = False,
    start_us: int = START_US,
    missing: float = 0.02,
) -> list[Item]:
    """`n` items, one per 100 ms.

    Feature 0 leads the loss by some seconds; 1 is the loss now; the others are noise, counters or constant. `flip`: the
    world with the classes exchanged, Good for Bad, in labels and features' meaning alike.
    """
    return list(_made(n, ap_id, seed, features, feature_hash, flip, start_us, missing))


@functools.lru_cache(maxsize=4)
def _made(
    n: int, ap_id: str, seed: int, features: int, feature_hash: int, flip: bool, start_us: int, missing: float
) -> tuple[Item, ...]:
    rng = np.random.default_rng(seed)
    steps = n + 40
    load = np.zeros(steps)
    burst = 0
    for t in range(1, steps):
        if burst == 0 and rng.random() < 1 / 150:
            burst = int(rng.integers(20, 80))
        burst = max(0, burst - 1)
        load[t] = 0.9 * load[t - 1] + 0.1 * (1.0 if burst else 0.1) + rng.normal(0, 0.01)
    raw = np.clip(load - 0.35, 0, None) * 0.4  # loss follows the load 1.5 s later
    loss = np.concatenate([np.zeros(15), raw[:-15]])
    window = np.convolve(loss, np.ones(10) / 10)[:steps]  # mean of the second that ends here
    window = np.clip(window + rng.normal(0, 0.002, steps), 0, 1)
    if flip:
        window = np.clip(0.25 - window, 0, 1)
    values = rng.integers(0, 1000, (steps, features))
    values[:, 0] = load * 100_000 + rng.normal(0, 3000, steps)
    if features > 3:
        values[:, 1] = window * 1000
        values[:, 2] = np.cumsum(rng.integers(0, 100, steps))
        values[:, 3] = 42
    values = values.astype(np.int64)
    values[rng.random((steps, features)) < missing] = MISSING
    classes = np.digitize(window, BOUNDS)
    at = np.arange(20, 20 + n)
    return tuple(
        Item(
            ap_id,
            "site-1",
            start_us + int(i) * 100_000,
            1,
            feature_hash,
            values[t].tolist(),
            200_000,
            int(classes[t]),
            int(classes[t + 12]),
            float(window[t + 12]),
            100,
            True,
            loss_permille_resent=0,
        )
        for i, t in enumerate(at)
    )
