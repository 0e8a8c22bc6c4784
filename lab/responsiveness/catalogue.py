"""The tests that are played: what the guest does in each, as a part of its plan."""
import pathlib

import yaml
from evaluate import scenarios
from evaluate.methods import Method

FOLDER = pathlib.Path(__file__).with_name("scenarios")
#: Of the responsiveness test: the draft's intervals are 5 s; its 100 probes a second would be a tenth of this air.
RPM = {"interval_s": 1.0, "more": 1, "most": 16, "probes_per_s": 10, "station": "laptop"}
#: Of flent's: pings begin this long before the flows and end this long after them; a value of each series a step.
DELAY_S, STEP_S = 5.0, 0.2
NAMES = ("rpm_down", "rpm_up", "rrul_be", "rtt_fair4", "rtt_fair9")


def down(name: str) -> str:
    """How series of the access point's downlink begin in flent's test. In rrul_be flent runs on the station, in
    rtt_fair on the server, whose hosts the stations are.
    """
    return "TCP download" if name == "rrul_be" else "TCP upload"


def plan(name: str, method: Method, seed: int) -> dict:
    """The guest's plan, without what the method acts with. ValueError for a name that stands for no test."""
    if name not in NAMES:
        raise ValueError(f"no test {name}; there are {', '.join(NAMES)}")
    base = "rpm" if name.startswith("rpm") else name
    given = yaml.safe_load((FOLDER / f"{base}.yaml").read_text())
    if base == "rpm":
        test = RPM | {"kind": "rpm", "direction": name.removeprefix("rpm_"), "control": method.control}
        return scenarios.plan(given | {"flows": []}, name, method, seed) | {"test": test}
    test, flows = rrul(given) if base == "rrul_be" else rtt_fair(given)
    length_s = given["duration_s"] - 2 * DELAY_S
    times = {"start_s": DELAY_S, "stop_s": DELAY_S + length_s}
    out = scenarios.plan(given | {"flows": [flow | times for flow in flows]}, name, method, seed)
    return out | {"test": test | {"kind": "flent", "delay_s": DELAY_S, "length_s": length_s, "step_s": STEP_S}}


def rrul(given: dict) -> tuple[dict, list[dict]]:
    station = given["stations"][0]["name"]
    ends = ["BE", "BE2", "BE3", "BE4"]
    series = [(f"TCP {way} {end}", {"station": station, "direction": way.removesuffix("load")})
              for way in ("upload", "download") for end in ends]
    pings = [("Ping (ms) ICMP", "icmp"), *((f"Ping (ms) UDP BE{n}", "udp") for n in (1, 2, 3))]
    return {
        "name": "rrul_be", "from": "station", "hosts": ["10.20.0.1"], "local_host": station, "parameters": {},
        "flow_series": [name for name, _ in series], "ping_series": [name for name, _ in pings],
        "pings": [{"station": station, "kind": kind} for _, kind in pings]
    }, [flow for _, flow in series]


def rtt_fair(given: dict) -> tuple[dict, list[dict]]:
    """rtt_fair4be for four hosts, else rtt_fair_var: both name their series by label and host."""
    stations = [s["name"] for s in given["stations"]]
    hosts = [f"10.20.0.{10 + n}" for n in range(len(stations))]
    four = len(stations) == 4
    labels = [f"BE{n + 1}" if four else "BE" for n in range(len(stations))]
    asks = [f"ICMP{n + 1}" if four else "ICMP" for n in range(len(stations))]
    # flent's upload is from the server to a host, so down to a station
    series = [(f"TCP {way} {label} {host}", {"station": station, "direction": direction})
              for label, host, station in zip(labels, hosts, stations)
              for way, direction in (("upload", "down"), ("download", "up"))]
    joined = {"markings": ",".join(["CS0"] * 4), "labels": ",".join(labels), "ping_labels": ",".join(asks)}
    return {
        "name": "rtt_fair4be" if four else "rtt_fair_var", "from": "server", "hosts": hosts, "local_host": "server",
        "parameters": joined if four else {}, "flow_series": [name for name, _ in series],
        "ping_series": [f"Ping (ms) {ask} {host}" for ask, host in zip(asks, hosts)],
        "pings": [{"station": station, "kind": "icmp"} for station in stations]
    }, [flow for _, flow in series]
