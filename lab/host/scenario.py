"""Scenario files (YAML, described in lab/scenarios/README.md) to the plan that the guest plays. Wrong files are named
and refused.
"""
import pathlib

import yaml

from . import chance

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "scenarios"

DEFAULTS = {
    "duration_s": 30,
    "aps": 1,
    "seed": 1,
    "scan_s": 2,
    "medium": {
        "freq_mhz": 5180, "width_mhz": 20, "scale": 1.0, "foreign": 0.0, "foreign_burst_us": 1500, "ext": 0.3,
        "noise_dbm": -92, "retries": 7, "ampdu_us": 4000, "lower_permille": 100
    },
    "ap": {
        "bridge": "linux", "security": "wpa2",
        "queue": {"mode": "txq", "limit": 8192, "kind": "fq_codel", "ce_us": 0}
    },
    "wired": {"delay_ms": 20, "jitter_ms": 0, "loss": 0.0, "rate_mbps": 0, "limit_pkts": 20000},
    "ecn": False,
    "ect1": False,
    "neighbours": {"count": 0, "per_radio": 5, "signals_dbm": [-88, -81, -77, -84, -69, -86, -79]},
    "stations": [],
    "flows": [],
    "sessions": [],
    "changes": [],
    "drifts": [],
    "record_at_s": 3,
    "record_ms": 0,
}
STATION = {"name": None, "count": 1, "ap": 0, "rate_mbps": 65.0, "loss": 0.02, "signal_dbm": -60}
FLOW = {
    "station": None, "direction": "down", "cc": "cubic", "peer_cc": None, "parallel": 1, "start_s": 0.0, "stop_s": None,
    "rate_mbps": 0, "mss": 0, "size_kb": 0, "burst_kb": 0, "every_s": 0, "udp": False, "dscp": 0, "ecn": None
}
#: Congestion controls that the guest's kernel has. BBR is version 1: later ones are in no kernel's own source. oal_lc
#: is that of policies/loss-cause, oal_ecn that of policies/learned-ecn.
CONGESTION_CONTROLS = ("reno", "cubic", "bbr", "dctcp", "illinois", "vegas", "veno", "westwood", "oal_lc", "oal_ecn")
#: `cc` of a flow that is no TCP: a download by lab/evaluate/quic. It has none of these keys.
QUIC = "quic"
NOT_OVER_QUIC = ("peer_cc", "rate_mbps", "mss", "udp", "dscp", "ecn")
SESSION = {
    "station": None, "direction": "down", "cc": "cubic", "together": False, "active_s": [5, 60], "idle_s": [5, 60],
    "parallel": 1, "rate_mbps": 0, "size_kb": 0, "every_s": [1, 8], "dscp": 0
}
DRIFT = {"stations": [], "hold_s": [5, 60], "levels": []}
CHANGE = {
    "at_s", "stations", "rate_mbps", "loss", "signal_dbm", "leave", "join", "scale", "foreign", "noise_dbm", "delay_ms"
}


class ScenarioError(Exception):
    """What is wrong with a scenario file, and where."""


def merge(defaults: dict, given: dict, where: str) -> dict:
    unknown = set(given) - set(defaults)
    if unknown:
        raise ScenarioError(f"{where}: unknown key {', '.join(sorted(unknown))}; known: {', '.join(sorted(defaults))}")
    out = {}
    for key, default in defaults.items():
        value = given.get(key, default)
        out[key] = merge(default, value, f"{where}.{key}") if isinstance(default, dict) else value
    return out


def permille(share: float, where: str) -> int:
    if not 0 <= share <= 1:
        raise ScenarioError(f"{where}: {share} is not a share between 0 and 1")
    return round(share * 1000)


def load(name: str) -> dict:
    """The plan of scenario NAME (lab/scenarios/NAME.yaml) or of a path."""
    path = pathlib.Path(name) if name.endswith(".yaml") else FOLDER / f"{name}.yaml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.yaml")))
        raise ScenarioError(f"no scenario {path}; there are: {known}")
    with open(path) as f:
        return plan(path.stem, yaml.safe_load(f) or {})


def plan(name: str, given: dict) -> dict:
    out = merge(DEFAULTS, given, name)
    out.update(name=name, period_s=out["duration_s"], exporter="", pcap=False, ap_id=None, live=None, sniff_hz=0,
               python="", memory_mb=512, site="lab", start_ns=None, tap="", quic="", clamp=None, sections=[], bundle="",
               of_policy="rwnd-fair", oal_lc=None, oal_ecn=None, looked=False)
    medium = out["medium"]
    medium["foreign_permille"] = permille(medium.pop("foreign"), f"{name}.medium.foreign")
    wired(out["wired"], f"{name}.wired")
    for key in ("ecn", "ect1"):
        if not isinstance(out[key], bool):
            raise ScenarioError(f"{name}.{key}: true or false, not {out[key]}")
    medium["ext_permille"] = permille(medium.pop("ext"), f"{name}.medium.ext")
    out["stations"] = stations(out, name)
    names = {s["name"] for s in out["stations"]} | {s["group"] for s in out["stations"]}
    out["flows"] = flows(out, name) + sessions(out, name)
    out["changes"] = [
        change(c, names, f"{name}.changes[{i}]", out["stations"])
        for i, c in enumerate(out["changes"] + drifts(out, name))
    ]
    if out["ap"]["queue"]["mode"] not in ("txq", "qdisc"):
        raise ScenarioError(f"{name}.ap.queue.mode: txq or qdisc, not {out['ap']['queue']['mode']}")
    ce_us = out["ap"]["queue"]["ce_us"]
    if not isinstance(ce_us, int) or not 0 <= ce_us < 10**6 or (ce_us and out["ap"]["queue"]["mode"] != "txq"):
        raise ScenarioError(f"{name}.ap.queue.ce_us: µs below a second, and only with mode txq, not {ce_us}")
    if out["ap"]["security"] not in ("wpa2", "open"):
        raise ScenarioError(f"{name}.ap.security: wpa2 or open, not {out['ap']['security']}")
    return out


def wired(w: dict, where: str) -> None:
    """ScenarioError for a value that the path cannot have."""
    for key in ("delay_ms", "jitter_ms", "rate_mbps", "limit_pkts"):
        if not isinstance(w[key], int | float) or isinstance(w[key], bool) or w[key] < 0:
            raise ScenarioError(f"{where}.{key}: a number from 0 on, not {w[key]}")
    if not isinstance(w["loss"], int | float) or not 0 <= w["loss"] < 1:
        raise ScenarioError(f"{where}.loss: a share below 1, not {w['loss']}")
    if w["jitter_ms"] > w["delay_ms"]:
        raise ScenarioError(f"{where}.jitter_ms: {w['jitter_ms']} is more than the delay, {w['delay_ms']}")
    if w["limit_pkts"] != int(w["limit_pkts"]) or not w["limit_pkts"]:
        raise ScenarioError(f"{where}.limit_pkts: a whole number from 1 on, not {w['limit_pkts']}")


def congestion_control(name: str | None, where: str) -> None:
    """None stands for the system's default."""
    if name is not None and name not in CONGESTION_CONTROLS:
        raise ScenarioError(f"{where}: {name} is none of {', '.join(CONGESTION_CONTROLS)}, nor null, the default")


def members(station_list: list[dict], name: str) -> list[str]:
    """The stations that a name stands for: one, or all of a group (an entry with count)."""
    return [s["name"] for s in station_list if name in (s["name"], s["group"])]


def stations(out: dict, name: str) -> list[dict]:
    result = []
    for i, entry in enumerate(out["stations"]):
        s = merge(STATION, entry, f"{name}.stations[{i}]")
        if not s["name"]:
            raise ScenarioError(f"{name}.stations[{i}]: needs a name")
        if not 0 <= s["ap"] < out["aps"]:
            raise ScenarioError(f"{name}.stations[{i}]: ap {s['ap']}, but there are {out['aps']}")
        for n in range(s["count"]):
            number = len(result)
            result.append({
                "name": s["name"] if s["count"] == 1 else f"{s['name']}{n + 1}", "group": s["name"], "ap": s["ap"],
                "radio": out["aps"] + number, "ns": f"sta{number}", "host": 10 + number,
                "rate_kbps": round(s["rate_mbps"] * 1000), "signal_dbm": s["signal_dbm"],
                "loss_permille": permille(s["loss"], f"{name}.stations[{i}].loss")
            })
    if not result:
        raise ScenarioError(f"{name}: no stations")
    return result


def flows(out: dict, name: str) -> list[dict]:
    """A flow entry that names a group stands for one flow to each of its stations."""
    result = []
    for i, entry in enumerate(out["flows"]):
        f = merge(FLOW, entry, f"{name}.flows[{i}]")
        if f["direction"] not in ("down", "up"):
            raise ScenarioError(f"{name}.flows[{i}].direction: down or up, not {f['direction']}")
        for key in ("cc", "peer_cc"):
            if f[key] != QUIC or key == "peer_cc":
                congestion_control(f[key], f"{name}.flows[{i}].{key}")
        if f["ecn"] not in (None, True, False):
            raise ScenarioError(f"{name}.flows[{i}].ecn: true, false or null, not {f['ecn']}")
        if f["cc"] == QUIC:
            over_quic(f, f"{name}.flows[{i}]")
        if f["udp"] and not f["rate_mbps"]:
            raise ScenarioError(f"{name}.flows[{i}]: udp needs rate_mbps")
        if f["burst_kb"] and (f["every_s"] <= 0 or f["size_kb"] or f["rate_mbps"] or f["udp"]):
            raise ScenarioError(f"{name}.flows[{i}]: burst_kb needs every_s, and neither size_kb, rate_mbps nor udp")
        if f["stop_s"] is None:
            f["stop_s"] = out["duration_s"]
        found = members(out["stations"], f["station"])
        if not found:
            raise ScenarioError(f"{name}.flows[{i}]: no station {f['station']}")
        result += [{**f, "station": station, "arrivals": None} for station in found]
    return result


def over_quic(f: dict, where: str) -> None:
    """ScenarioError for what a flow over QUIC cannot be."""
    if f["direction"] != "down":
        raise ScenarioError(f"{where}: over QUIC there are downloads only")
    if given := [key for key in NOT_OVER_QUIC if f[key]]:
        raise ScenarioError(f"{where}: a flow over QUIC has no {', '.join(given)}")


def sessions(out: dict, name: str) -> list[dict]:
    """A session entry becomes a flow per station with the arrivals that its draw of chance gives."""
    result = []
    for i, entry in enumerate(out["sessions"]):
        where = f"{name}.sessions[{i}]"
        s = merge(SESSION, entry, where)
        found = members(out["stations"], s["station"])
        if not found:
            raise ScenarioError(f"{where}: no station {s['station']}")
        if s["direction"] not in ("down", "up"):
            raise ScenarioError(f"{where}.direction: down or up, not {s['direction']}")
        congestion_control(s["cc"], f"{where}.cc")
        for key in ("active_s", "idle_s", "parallel", "rate_mbps", "size_kb", "every_s"):
            s[key] = span(s[key], f"{where}.{key}")
        for key in ("active_s", "idle_s", *(["every_s"] if s["size_kb"][1] else [])):
            if s[key][0] <= 0:
                raise ScenarioError(f"{where}.{key}: must be more than 0 s")
        for station in found:
            draw = chance.source(out["seed"], where, "" if s["together"] else station)
            result.append({
                **FLOW, "station": station, "direction": s["direction"], "cc": s["cc"], "dscp": s["dscp"],
                "stop_s": out["duration_s"], "arrivals": chance.arrivals(s, out["duration_s"], draw)
            })
    return result


def drifts(out: dict, name: str) -> list[dict]:
    """A drift entry becomes changes: levels one after another, each held for a while."""
    result = []
    for i, entry in enumerate(out["drifts"]):
        where = f"{name}.drifts[{i}]"
        d = merge(DRIFT, entry, where)
        if len(d["levels"]) < 2:
            raise ScenarioError(f"{where}.levels: at least two, to go from one to another")
        hold_s = span(d["hold_s"], f"{where}.hold_s")
        if hold_s[0] <= 0:
            raise ScenarioError(f"{where}.hold_s: must be more than 0 s")
        for station in d["stations"] or [None]:
            draw = chance.source(out["seed"], where, station or "")
            for at_s, level in chance.levels(d["levels"], hold_s, out["duration_s"], draw):
                result.append({"at_s": at_s, **level, **({"stations": [station]} if station else {})})
    return result


def span(value, where: str) -> tuple[float, float]:
    """A number, or [smallest, largest] between which chance draws."""
    low, high = value if isinstance(value, list) and len(value) == 2 else (value, value)
    if not all(isinstance(v, int | float) and v >= 0 for v in (low, high)) or low > high:
        raise ScenarioError(f"{where}: a number, or [smallest, largest], not {value}")
    return low, high


def change(entry: dict, names: set[str], where: str, station_list: list[dict]) -> dict:
    unknown = set(entry) - CHANGE
    if unknown or "at_s" not in entry:
        raise ScenarioError(f"{where}: " + (f"unknown key {', '.join(sorted(unknown))}" if unknown else "needs at_s"))
    out = dict(entry)
    if "stations" in out:
        missing = set(out["stations"]) - names
        if missing:
            raise ScenarioError(f"{where}: no station {', '.join(sorted(missing))}")
        out["stations"] = [n for one in out["stations"] for n in members(station_list, one)]
    if "rate_mbps" in out:
        out["rate_kbps"] = round(out.pop("rate_mbps") * 1000)
    if "loss" in out:
        out["loss_permille"] = permille(out.pop("loss"), f"{where}.loss")
    if "foreign" in out:
        out["foreign_permille"] = permille(out.pop("foreign"), f"{where}.foreign")
    return out


def radios(p: dict) -> int:
    """hwsim radios that the guest needs."""
    n = p["neighbours"]
    return p["aps"] + len(p["stations"]) + -(-n["count"] // n["per_radio"])
