"""Capacity of a millimetre-wave link that people walk through, from a published model: no recording of such a link can
be had freely, so it is drawn.

The model is that of MacCartney, Rappaport and Rangan ("Rapid Fading Due to Human Blockage in Pedestrian Crowds at 5G
Millimeter-Wave Frequencies", GLOBECOM 2017, arXiv 1709.05883; 73.5 GHz): each blocker goes through four states, clear,
decay, shadow and rise; attenuation goes linearly within decay and rise. Rates between the states and the mean
attenuation by beamwidth are the defaults of the authors' simulator, NYUSIM 2 (its getMarkovTrace_default); attenuations
of several blockers add up in dB, as there. What a dB costs is our assumption: Shannon's capacity at `snr_db`, over that
of the clear link.
"""
import math
import random

#: Keys of a scenario's `blockage`. NYUSIM draws 1 to 5 blockers; `low`: the link never has less of its rate.
DEFAULTS = {"beamwidth_deg": 15.0, "blockers": 5, "snr_db": 15.0, "step_s": 0.02, "low": 0.1, "seed": 1}
STEP_S = 0.001  # of the chain
ATTENUATION_SIGMA_DB = 0.31


def states_per_s(beamwidth_deg: float) -> list[float]:
    """Rates at which clear, decay, shadow and rise are left, 1/s."""
    return [0.2, 0.065 * beamwidth_deg + 7.425, 0.05 * beamwidth_deg + 7.35, 6.7]


def attenuation_db(beamwidth_deg: float) -> float:
    """Mean of the shadow: the narrower the beam, the more of it a body covers."""
    return 10 * math.log10(9.8 + 180 / beamwidth_deg)


def blocker_db(beamwidth_deg: float, seconds: float, chance: random.Random) -> list[float]:
    """Attenuation by one blocker, dB, a value a millisecond; clear at first."""
    steps = round(seconds / STEP_S)
    depth = attenuation_db(beamwidth_deg) + chance.gauss(0, ATTENUATION_SIGMA_DB)
    ends = [(0.0, 0.0), (0.0, depth), (depth, depth), (depth, 0.0)]
    out: list[float] = []
    state = 0
    while len(out) < steps:
        stays = max(1, round(chance.expovariate(states_per_s(beamwidth_deg)[state]) / STEP_S))
        first, last = ends[state]
        out += [first + (last - first) * n / stays for n in range(1, stays + 1)]
        state = (state + 1) % len(ends)
    return out[:steps]


def share(loss_db: float, snr_db: float) -> float:
    """What a link has of its clear capacity."""
    return math.log2(1 + 10 ** ((snr_db - loss_db) / 10)) / math.log2(1 + 10 ** (snr_db / 10))


def levels(spec: dict, seconds: float, who: str) -> list[float]:
    """Share of the clear link's capacity, a value each `step_s`; the same again for the same seed and name."""
    chance = random.Random(f"{spec['seed']} {who}")
    blockers = [blocker_db(spec["beamwidth_deg"], seconds, chance) for _ in range(spec["blockers"])]
    every = max(1, round(spec["step_s"] / STEP_S))
    return [round(max(share(sum(one[n] for one in blockers), spec["snr_db"]), spec["low"]), 3)
            for n in range(0, round(seconds / STEP_S), every)]


def changes(spec: dict, stations: list[dict], seconds: float) -> list[dict]:
    """A scenario's changes: each station's rate where it is another than before, each station's blockers its own."""
    out = []
    for station in stations:
        before = None
        for n, level in enumerate(levels(spec, seconds, station["name"])):
            rate = round(station["rate_mbps"] * level, 2)
            if rate != before:
                out.append({"at_s": round(n * spec["step_s"], 3), "stations": [station["name"]], "rate_mbps": rate})
            before = rate
    return out
