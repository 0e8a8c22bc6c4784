"""Is a learned forecast of a station's capacity better than the cheapest rules? Fitted on the corpus's sites of
`train`, the rival chosen on `validation`, judged on `test`.

Two errors. `ratio`: the mean of |log2(forecast / what was carried)|, 1 is twice or half; a window is a product of rate
and time, so a ratio is what it is wrong by. `rate`: the mean of |forecast - carried| over the mean that was carried;
stalls, in which nothing is carried, weigh little there.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from oal_training.capacity.samples import FLOOR_KBPS, INPUTS, Samples

BASE = "rate_ewma_400ms_kbps"  # the model learns what the rate is to this
CLEAR = 0.10  # a forecast is worth its price if it takes so much of the best rival's error, beyond chance
XGBOOST = {  # of window.yaml, with the error that is judged
    "n_estimators": 100, "max_depth": 5, "learning_rate": 0.1, "min_child_weight": 100, "subsample": 0.8,
    "colsample_bytree": 0.8, "tree_method": "hist", "objective": "reg:absoluteerror", "random_state": 7, "n_jobs": 1
}
GROUPS = ("all", "new", "moving")


def logs(kbps: np.ndarray) -> np.ndarray:
    return np.log2(np.maximum(np.nan_to_num(kbps), FLOOR_KBPS))


def rules(samples: Samples, yields: float) -> dict[str, np.ndarray]:
    """log2 of each rule's forecast. `yields`: payload of a second on the air over the PHY rate (median of `train`)."""
    phy, share = samples.column("phy_kbps"), np.nan_to_num(samples.column("ap_air_1000ms"))
    return {
        "the last 100 ms": logs(samples.column("rate_100ms_kbps")),
        "the last 200 ms": logs(samples.column("rate_200ms_kbps")),
        "the last 500 ms": logs(samples.column("rate_500ms_kbps")),
        "smoothed over 400 ms (the law)": logs(samples.column(BASE)),
        "smoothed over 1 s (the law)": logs(samples.column("rate_ewma_1s_kbps")),
        "PHY rate x own share of the air": logs(phy * yields * samples.column("air_500ms")),
        "PHY rate x AP's air / active stations": logs(phy * yields * share
                                                      / np.maximum(samples.column("active_stations"), 1)),
    }


def inputs(samples: Samples) -> np.ndarray:
    """Columns of samples, rates as log2 over the base; the base itself stays as log2 kbit/s."""
    x = samples.x.copy()
    base = logs(samples.column(BASE))
    for i, name in enumerate(INPUTS):
        if name.endswith("_kbps"):
            x[:, i] = base if name == BASE else logs(x[:, i]) - base
    return x


def forecast(train: Samples, horizon_us: int, others: list[Samples]) -> list[np.ndarray]:
    """log2 kbit/s that a model fitted on `train` says of other samples."""
    import xgboost

    model = xgboost.XGBRegressor(**XGBOOST)
    model.fit(inputs(train), logs(train.y[horizon_us]) - logs(train.column(BASE)))
    return [logs(s.column(BASE)) + model.predict(inputs(s)).astype(float) for s in others]


def over_sites(values: dict[str, float]) -> dict:
    """Mean with its 95 % interval of Student's t, a site a draw."""
    v = np.array(list(values.values()))
    half = float(stats.t.ppf(0.975, len(v) - 1) * v.std(ddof=1) / math.sqrt(len(v))) if len(v) > 1 else math.nan
    return {"value": float(v.mean()), "low": float(v.mean()) - half, "high": float(v.mean()) + half, "sites": len(v)}


def by_site(samples: Samples, error: np.ndarray, least: int = 20) -> dict[str, float]:
    """Mean error of each site: of its stations' means, so that a busy station is not the site. Sites with fewer than
    `least` samples say nothing.
    """
    out = {}
    for site in sorted(set(samples.site.tolist())):
        mine = samples.site == site
        if mine.sum() < least:
            continue
        station = np.char.add(samples.ap_run[mine].astype(str), samples.mac[mine].astype(str))
        out[site] = float(np.mean([error[mine][station == s].mean() for s in np.unique(station)]))
    return out


def errors_of(samples: Samples, log: np.ndarray, horizon_us: int) -> dict[str, dict[str, float]]:
    """By kind of error, then by site."""
    carried = samples.y[horizon_us]
    mean = by_site(samples, carried)
    off = by_site(samples, np.abs(np.exp2(log) - carried))
    return {"ratio": by_site(samples, np.abs(log - logs(carried))),
            "rate": {site: value / mean[site] for site, value in off.items() if mean[site] > 0}}


def group(samples: Samples, name: str) -> np.ndarray:
    return np.ones(len(samples), bool) if name == "all" else getattr(samples, name)


def compared(of_rules: dict[str, dict[str, float]], rival: str) -> dict:
    """Errors over sites, and what the model takes of the rival's: a share of it, paired by site."""
    model, other = of_rules["model"], of_rules[rival]
    before = float(np.mean(list(other.values())))
    gain = over_sites({site: (other[site] - model[site]) / before for site in model})
    return {"rival": rival, "errors": {rule: over_sites(found) for rule, found in of_rules.items()}, "gain": gain,
            "clear": is_clear(gain)}


def is_clear(gain: dict) -> bool:
    """The model takes CLEAR of the rival's error, and the whole interval of its gain is above 0."""
    return gain["value"] >= CLEAR and gain["low"] > 0


def judge(samples: Samples, horizon_us: int) -> dict:
    """Errors of the rules and of the model on `test`, in all and by group, with the model's gain over the rule that was
    best on `validation` in that group.
    """
    known = samples[~np.isnan(samples.y[horizon_us])]
    train, validation, test = (known[known.part == part] for part in ("train", "validation", "test"))
    yields = float(np.nanmedian(train.column("yield_1s")))
    learned = forecast(train, horizon_us, [validation, test])
    said = [rules(of, yields) | {"model": model} for of, model in zip((validation, test), learned, strict=True)]
    out = {"horizon_ms": horizon_us // 1000, "groups": {},
           "samples": {"train": len(train), "validation": len(validation), "test": len(test)}}
    for name in GROUPS:
        found = []
        for of, logs_of in zip((validation, test), said, strict=True):
            at = group(of, name)
            found.append({rule: errors_of(of[at], log[at], horizon_us) for rule, log in logs_of.items()})
        one = {"samples": int(group(test, name).sum())}
        for kind in ("ratio", "rate"):
            chosen = {rule: np.mean(list(error[kind].values())) for rule, error in found[0].items() if rule != "model"}
            one[kind] = compared({rule: error[kind] for rule, error in found[1].items()}, min(chosen, key=chosen.get))
        out["groups"][name] = one
    return out
