"""The upper bound: windows of somebody who knows the future.

A run of the same scenario and seed without control keeps every queue full, so what its stations received says, in each
tenth of a second, how much air an access point had: Σ bytesⱼ / rateⱼ over its stations. Shared equally in time, as
airtime fairness would, station i can have rateᵢ / n · Σ bytesⱼ / rateⱼ bytes, n the stations with a long flow at that
moment. The link rates are the scenario's, with its changes; what overhead they leave out cancels as far as it is the
same for all. The window is that rate times the smallest round trip plus a target.
"""
import copy

import numpy as np

SMOOTH_STEPS = 3  # what the access point had of the air is smoothed over so many steps to both sides: an oracle may

RAMP_STEPS = 15  # until then the recorded flows were still getting under way, and said less than the air could carry


def link_rates(plan: dict, step_s: float, steps: int) -> dict[str, np.ndarray]:
    """kbit/s of each station that get through, in each step; 0 while it is away."""
    stations = {s["name"]: copy.deepcopy(s) | {"here": True} for s in plan["stations"]}
    scale, out = plan["medium"]["scale"], {name: np.zeros(steps) for name in stations}
    changes = sorted(plan["changes"], key=lambda change: change["at_s"])
    for step in range(steps):
        while changes and changes[0]["at_s"] <= step * step_s:
            change = changes.pop(0)
            scale = change.get("scale", scale)
            for name in change.get("stations", []):
                stations[name].update({k: change[k] for k in ("rate_kbps", "loss_permille") if k in change})
                stations[name]["here"] = bool(change.get("join") or stations[name]["here"] and not change.get("leave"))
        for name, s in stations.items():
            out[name][step] = max(6500, s["rate_kbps"] * scale) * (1 - s["loss_permille"] / 1000) if s["here"] else 0
    return out


def active(plan: dict, step_s: float, steps: int) -> dict[str, np.ndarray]:
    """Number of long flows of each station in each step."""
    out = {s["name"]: np.zeros(steps, int) for s in plan["stations"]}
    for flow in plan["flows"]:
        if flow["direction"] == "down" and not flow["size_kb"] and not flow["burst_kb"] and not flow["udp"]:
            out[flow["station"]][int(flow["start_s"] / step_s):int(np.ceil(flow["stop_s"]
                                                                           / step_s))] += flow["parallel"]
    return out


def shares(plan: dict, received: dict) -> dict[str, np.ndarray]:
    """bytes/s that each long flow of a station can have, step for step."""
    step_s = received["step_s"]
    steps = len(next(iter(received["bytes"].values())))
    rates, flows = link_rates(plan, step_s, steps), active(plan, step_s, steps)
    kernel = np.ones(2 * SMOOTH_STEPS + 1)
    out = {}
    for ap in range(plan["aps"]):
        names = [s["name"] for s in plan["stations"] if s["ap"] == ap and s["name"] in received["bytes"]]
        air = np.zeros(steps)
        for name in names:
            air += np.divide(np.array(received["bytes"][name], float), rates[name], out=np.zeros(steps),
                             where=rates[name] > 0)
        air = np.convolve(air, kernel, "same") / np.convolve(np.ones(steps), kernel, "same")
        air[:RAMP_STEPS] = np.maximum(air[:RAMP_STEPS], air[RAMP_STEPS:2 * RAMP_STEPS].mean())
        n = sum(((flows[name] > 0) & (rates[name] > 0)).astype(int) for name in names)
        for name in names:
            out[name] = np.where((n > 0) & (flows[name] > 0),
                                 rates[name] * air / np.maximum(n, 1) / np.maximum(flows[name], 1) / step_s, 0)
    return out


def schedule(plan: dict, before: dict, target_us: int) -> dict:
    """The guest's `clamp`: bytes of each station's flows, step for step; 0 where it says nothing."""
    received = before["rates"]
    windows = {
        name: [int(rate * (plan["wired"]["delay_ms"] / 1e3 + target_us / 1e6)) for rate in rates]
        for name, rates in shares(plan, received).items()
    }
    return {"step_s": received["step_s"], "steps": len(next(iter(windows.values()))), "stations": windows}
