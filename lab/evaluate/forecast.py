"""What a forecast of capacity is worth to a law that uses it.

The oracle's shares say what a station's flows could carry, step for step. A law that forecasts gives windows by what it
expects of the next WINDOW_STEPS: without learning what the last WINDOW_STEPS were (the best rule of the policy's page,
"the last 200 ms"), with all knowledge what the next are. In between, the forecast that takes off a share of the rule's
error: past + share · (next − past), whose error is the rule's less that share at every instant. How much air the access
point has is the oracle's, smoothed to both sides, in all of them: they differ in nothing else.
"""
import numpy as np

from . import oracle

WINDOW_STEPS = 2  # of 100 ms


def ahead(rates: np.ndarray, share: float) -> np.ndarray:
    """bytes/s that the forecast expects, step for step, of rates that a flow can have. Where nothing was known of the
    last steps, the flow just began: the next ones then, whatever the share. 0 where the flow can have nothing.
    """
    steps, out = len(rates), np.zeros(len(rates))
    for step in range(steps):
        coming = rates[step:step + WINDOW_STEPS]
        past = rates[max(0, step - WINDOW_STEPS):step]
        known = past[past > 0]
        if rates[step] > 0:
            following = coming[coming > 0].mean()
            out[step] = known.mean() + share * (following - known.mean()) if len(known) else following
    return out


def schedule(plan: dict, before: dict, target_us: int, share: float) -> dict:
    """The guest's `clamp`, as the oracle's, by what a forecast expects that takes off `share` of the rule's error."""
    received, round_trip_s = before["rates"], plan["wired"]["delay_ms"] / 1e3 + target_us / 1e6
    windows = {name: [int(rate * round_trip_s) for rate in ahead(rates, share)]
               for name, rates in oracle.shares(plan, received).items()}
    return {"step_s": received["step_s"], "steps": len(next(iter(windows.values()))), "stations": windows}
