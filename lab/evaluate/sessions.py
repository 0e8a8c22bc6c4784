"""Sessions of the senders of a cell: what the sender's kernel says of each long download (guest/session.py), and beside
it what the access point knows of its last hop; what a session is worth, by the utilities of policies/cc-select."""
import collections
import csv
import functools
import pathlib

import numpy as np
import pandas as pd
import yaml
from guest.net import address
from guest.wifi import radio_mac
from oal_training.cc_select.utility import Utility

from . import oracle

GRID = pathlib.Path(__file__).resolve().parents[2] / "policies/cc-select/grid.yaml"
TCP = "6"
STEP_S = 0.1
#: Of a station in the ground truth's sums: counters that the exporter sends as well.
COUNTERS = ("tx_packets", "tx_retries", "msdu_failed", "txq_drops", "airtime_us")


@functools.cache
def utilities() -> dict[str, Utility]:
    """By name."""
    return {name: Utility(**weights) for name, weights in yaml.safe_load(GRID.read_text())["utilities"].items()}


def lost(file: pathlib.Path) -> dict[tuple[str, str], collections.Counter]:
    """Packets with TCP data that were lost on their way from a radio, by radio and address: how many by each cause."""
    out: dict = collections.defaultdict(collections.Counter)
    with open(file) as f:
        for row in csv.DictReader(f):
            if row["protocol"] == TCP and int(row["payload_bytes"]) > 0:
                out[row["device"], row["destination"]][row["cause"]] += 1
    return out


def last_hop(station: dict, truth: dict, lost_of: collections.Counter, link_kbps: np.ndarray) -> dict:
    """What its access point knows of a station, of the whole run: its link, tries, losses by cause, air; and how busy
    the channel was. Counters are those that the exporter reads; causes are the kernel's own, which rows of `loss_event`
    tell right in 97 to 99 of 100 losses.
    """
    own = truth["stations"].get(radio_mac(station["radio"]), {})
    first, last = truth["start"]["survey"], truth["end"]["survey"]
    return {"ap_link_mbps": round(float(link_kbps.mean()) / 1e3, 3),
            **{f"ap_{name}": own.get(name) for name in COUNTERS}, "ap_lost_air": lost_of["air"],
            "ap_lost_queue": lost_of["queue"],
            "ap_busy_ms": last["busy_ms"] - first["busy_ms"], "ap_survey_ms": last["time_ms"] - first["time_ms"]}


def rows(plan: dict, truths: list[dict], played: list[tuple[int, dict]], folder: pathlib.Path) -> list[dict]:
    """A row a session of the cell; `played`: of each flow its number in the plan, and what the guest says of it. An
    access point that ends after another one has begun the scenario again by then: these sessions are none of it.
    """
    stations = {s["name"]: s for s in plan["stations"]}
    rates = oracle.link_rates(plan, STEP_S, round(plan["duration_s"] / STEP_S))
    of = lost(folder / f"{plan['name']}.losses.csv")
    out = []
    for n, entry in played:
        station = stations[entry["station"]]
        device, host = f"wlan{station['ap']}", address(station["ap"], station["host"])
        for session in entry.get("sessions", [])[:plan["flows"][n]["parallel"]]:
            out.append({"flow": n, "station": station["name"], "ap": station["ap"], "cc": entry["cc"], **session,
                        **last_hop(station, truths[station["ap"]], of[device, host], rates[station["name"]])})
    return out


def known(session: dict) -> bool:
    """Whether its sender had a round trip."""
    return bool(session["looks"] and session["seen_us"])


def worths(found: list[dict]) -> dict[str, float | None]:
    """Of a cell, by each utility, the mean of its sessions; None where one of them is not known, nothing where there
    are none.
    """
    if not found:
        return {}
    if not all(map(known, found)):
        return {f"worth_{name}": None for name in utilities()}
    table = pd.DataFrame(found)
    return {f"worth_{name}": float(u.of(table).mean()) for name, u in utilities().items()}
