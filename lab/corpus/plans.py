"""The runs of the corpus, drawn from a seed: sites, their evenings, and the scenario of each. Pure: the same file gives
the same scenarios, and a site more leaves the others as they were.
"""
import datetime
import functools
import math
import pathlib
import random
from dataclasses import dataclass

import yaml

FILE = pathlib.Path(__file__).with_name("corpus.yaml")
LETTERS = "abcdefghij"
PAGE_KB, FILM_KB = (15, 400), (150, 900)
#: What of a link's PHY rate a TCP flow has: preambles, contention, acknowledgements.
USABLE = 0.6


@dataclass(frozen=True)
class Run:
    """An evening of a site: one start of the guest, a capture for each of its access points."""

    name: str  # train03a
    part: str
    site: str  # train03
    evening: int
    aps: int
    given: dict  # the scenario, in the words of lab/scenarios/README.md
    start_ns: int

    @property
    def captures(self) -> list[str]:
        """Names of its AP-runs: train03a, train03a-1, …"""
        return [self.name if ap == 0 else f"{self.name}-{ap}" for ap in range(self.aps)]


@functools.cache
def settings(file: pathlib.Path = FILE) -> dict:
    """corpus.yaml."""
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def log_between(chance: random.Random, span: list[float]) -> float:
    """Log-uniform between the two."""
    return math.exp(chance.uniform(math.log(span[0]), math.log(span[1])))


def weighted(chance: random.Random, weights: dict):
    """One of the keys."""
    return chance.choices(list(weights), list(weights.values()))[0]


def link(spec: dict, signal_dbm: float, noise: float = 0.0) -> dict:
    """Rate, loss and signal of a station that is heard so loud; noise: dB that its rate is chosen worse."""
    _, rate, loss = next(row for row in spec["link"] if signal_dbm - noise >= row[0])
    return {"rate_mbps": rate, "loss": loss, "signal_dbm": round(signal_dbm)}


def place(spec: dict, name: str, seed: int) -> dict:
    """What of a site stays: access points, queue, wires, stations, neighbours."""
    chance = random.Random(f"{seed} site {name}")
    aps = weighted(chance, spec["aps"])
    low, high = spec["stations"]
    number = min(max(round(log_between(chance, [low, high])), 2 * aps), 8 * aps)
    where = sorted(list(range(aps)) * 2 + [chance.randrange(aps) for _ in range(number - 2 * aps)])
    stations = [{"name": f"s{n}", "ap": ap, **link(spec, chance.uniform(*spec["signal_dbm"]), chance.uniform(-2, 3))}
                for n, ap in enumerate(where)]
    kind = weighted(chance, spec["queue"])
    size = round(log_between(chance, spec[{"bfifo": "bfifo_kb", "pfifo": "pfifo_pkts", "txq": "txq_pkts"}.get(
        kind, "codel_pkts")]))
    if kind == "txq":
        queue = {"mode": "txq", "limit": size}
    else:
        queue = {"mode": "qdisc", "kind": f"bfifo limit {size}kb" if kind == "bfifo" else f"{kind} limit {size}"}
    return {
        "aps": aps, "medium": {
            "freq_mhz": weighted(chance, spec["band"]), "width_mhz": 20,
            "foreign": round(log_between(chance, spec["foreign"]), 3),
            "noise_dbm": round(chance.uniform(*spec["noise_dbm"]))
        }, "ap": {"security": "open", "queue": queue}, "wired": {"delay_ms": round(log_between(chance,
                                                                                               spec["delay_ms"]))},
        "neighbours": {
            "count": round(log_between(chance, spec["neighbours"])),
            "signals_dbm": [round(chance.uniform(*spec["signal_dbm"])) for _ in range(7)]
        }, "stations": stations
    }


def carries_mbps(given: dict) -> float:
    """What the air of a site can carry: all its stations have the same share of the time."""
    rates = [s["rate_mbps"] * (1 - s["loss"]) for s in given["stations"]]
    return USABLE * (1 - given["medium"]["foreign"]) * sum(rates) / len(rates)


def habit(kind: str, station: str, control: str, share_mbps: float, chance: random.Random,
          duration_s: float) -> tuple[list[dict], list[dict], float]:
    """Sessions and flows of somebody who does that, and the Mbit/s that it makes in the mean. share_mbps: what the
    station has when all are active.
    """
    base = {"station": station, "cc": control}
    often = {"active_s": [2, 20], "idle_s": [1.5, 12]}
    if kind == "page":
        parallel, every_s = chance.randint(2, 6), chance.uniform(0.7, 3)
        kb = [PAGE_KB[0], round(log_between(chance, [60, PAGE_KB[1]]))]
        made = {**base, **often, "size_kb": kb, "parallel": [1, parallel], "every_s": [every_s / 2, every_s * 2]}
        return [made], [], 0.6 * math.sqrt(kb[0] * kb[1]) * 8e-3 * math.sqrt(parallel) / every_s
    if kind == "film":
        kb, every_s = round(log_between(chance, FILM_KB)), round(chance.uniform(1.2, 4), 1)
        start_s = round(chance.uniform(0, 0.5 * duration_s), 2)
        return [], [{**base, "burst_kb": kb, "every_s": every_s, "start_s": start_s,
                     "stop_s": round(chance.uniform(start_s + 10, duration_s), 2)}], 0.6 * kb * 8e-3 / every_s
    if kind == "download":
        return [{**base, "active_s": [1.5, 12], "idle_s": [3, 20], "parallel": [1, 2]}], [], 0.35 * share_mbps
    if kind == "update":
        return [{**base, "active_s": [1, 8], "idle_s": [5, 25], "parallel": [3, 8]}], [], 0.3 * share_mbps
    if kind == "swarm":
        return [{**base, "active_s": [2, 10], "idle_s": [5, 25], "parallel": [4, 9], "dscp": 8,
                 "rate_mbps": [0.05, 0.4]}], [], 0.4
    if kind == "stream":
        mbps = round(log_between(chance, [0.4, 4]), 2)
        return [{**base, "active_s": [5, 30], "idle_s": [2, 15], "rate_mbps": [mbps / 1.5, mbps]}], [], 0.5 * mbps
    if kind == "call":
        start_s, voice = round(chance.uniform(0, 0.4 * duration_s), 2), chance.choice((46, 48))
        return [], [{"station": station, "direction": way, "udp": True, "rate_mbps": 0.12, "dscp": voice,
                     "start_s": start_s} for way in ("down", "up")], 0.25
    return [{**base, "direction": "up", "active_s": [2, 15], "idle_s": [5, 25],
             "rate_mbps": [0.2, round(max(0.3, 0.5 * share_mbps), 2)]}], [], 0.2 * share_mbps


def people(given: dict, spec: dict, chance: random.Random, duration_s: float) -> tuple[list[dict], list[dict]]:
    """Sessions and flows of an evening: habits, one after another, until the load is made."""
    room = carries_mbps(given)
    wanted = log_between(chance, spec["load"]) * room
    share = room / len(given["stations"])
    weights = {kind: one["weight"] for kind, one in spec["habits"].items()}
    only = weighted(chance, spec["controls"]) if chance.random() < spec["one_control"] else None
    sessions, flows, made = [], [], 0.0
    names = [s["name"] for s in given["stations"]]
    while made < wanted and len(sessions) + len(flows) < 5 * len(names):
        new = habit(weighted(chance, weights), chance.choice(names), only or weighted(chance, spec["controls"]), share,
                    chance, duration_s)
        sessions, flows, made = sessions + new[0], flows + new[1], made + new[2]
    if chance.random() < spec["rush"]:
        for name in chance.sample(names, max(1, len(names) // 2)):
            sessions.append({
                "station": name, "together": True, "active_s": [0.8, 5], "idle_s": [6, 20], "parallel": [2, 6],
                "cc": only or weighted(chance, spec["controls"])
            })
    return sessions, flows


def links(given: dict, site: dict, spec: dict, chance: random.Random) -> list[dict]:
    """How air and links change: foreign load and noise for all, the signal of walkers each for itself, and on some
    evenings swings within a second.
    """
    foreign, noise = given["medium"]["foreign"], given["medium"]["noise_dbm"]
    levels = [{"foreign": round(min(0.75, foreign * factor), 3), "noise_dbm": noise + round(chance.uniform(-2, 3))}
              for factor in (0.4, 0.8, 1.3, 2.2)]
    drifts = [{"hold_s": spec["foreign_hold_s"], "levels": levels}]
    swinging = chance.random() < spec["swings"]
    for station in given["stations"]:
        if chance.random() >= spec["walkers"]:
            continue
        steps = (-3, 3, -9) if not swinging else (-4, 5, -12, 0)
        drifts.append({
            "stations": [station["name"]], "hold_s": spec["swing_hold_s" if swinging else "link_hold_s"],
            "levels": [link(site, min(-45, max(-88, station["signal_dbm"] + step + chance.uniform(-1, 1))))
                       for step in steps]
        })
    return drifts


def absences(given: dict, spec: dict, chance: random.Random, duration_s: float) -> list[dict]:
    """On some evenings a station goes away for a while."""
    if chance.random() >= spec["leaves"]:
        return []
    name, at_s = chance.choice(given["stations"])["name"], round(chance.uniform(0.2, 0.6) * duration_s, 1)
    back_s = round(min(at_s + chance.uniform(3, 12), duration_s - 4), 1)
    return [{"at_s": at_s, "stations": [name], "leave": True}, {"at_s": back_s, "stations": [name], "join": True}]


def scenario(site: str, evening: int, c: dict) -> dict:
    """The scenario of an evening."""
    chance = random.Random(f"{c['seed']} evening {site} {evening}")
    given = place(c["site"], site, c["seed"])
    sessions, flows = people(given, c["evening"], chance, c["duration_s"])
    if not flows:  # a scenario has at least one: somebody who keeps a connection open
        flows = [{"station": given["stations"][0]["name"], "rate_mbps": 0.05}]
    return {
        "duration_s": c["duration_s"], "seed": chance.randrange(1, 1 << 31), **given, "sessions": sessions,
        "flows": flows, "drifts": links(given, c["site"], c["evening"], chance),
        "changes": absences(given, c["evening"], chance, c["duration_s"])
    }


def runs(c: dict | None = None) -> list[Run]:
    """Every run, in an order that a corpus stopped early is balanced in: evening after evening, parts mixed."""
    c = c or settings()
    begin = c["begin"]
    begin = begin if isinstance(begin, datetime.datetime) else datetime.datetime.fromisoformat(begin)
    begin = begin.replace(tzinfo=datetime.UTC) if begin.tzinfo is None else begin
    order, found = 0, []
    for part, number in c["parts"].items():
        for n in range(1, number + 1):
            site = f"{part}{n:02d}"
            for evening in range(c["evenings"]):
                given = scenario(site, evening, c)
                found.append((evening, n / number, Run(
                    f"{site}{LETTERS[evening]}", part, site, evening, given["aps"], given,
                    int(begin.timestamp() + order * c["apart_s"]) * 1_000_000_000)))
                order += 1
    return [run for _, _, run in sorted(found, key=lambda one: one[:2])]
