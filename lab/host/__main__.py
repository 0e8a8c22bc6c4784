"""lab/run SCENARIO: play a scenario and leave its capture and its ground truth in build/lab of the repository."""
import argparse
import json
import os
import pathlib
import sys
import time

from . import guest, scenario

BUILD = guest.LAB.parent / "build/lab"
EXPORTER = guest.LAB.parent / "ap-exporter/build/ap-exporter"


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="lab/run", description=__doc__)
    p.add_argument("scenario", help="a name in lab/scenarios, or a path that ends in .yaml")
    p.add_argument("--out", type=pathlib.Path, default=BUILD, help="folder for the results (build/lab)")
    p.add_argument("--exporter", default=os.environ.get("EXPORTER", str(EXPORTER)), help="ap-exporter to run in the guest; '' for none")
    p.add_argument("--pcap", action="store_true", help="also capture TCP headers with tcpdump (96 bytes each)")
    p.add_argument("--real-time", action="store_true", help="the guest's clock is this machine's, not virtual")
    p.add_argument("--record-ms", type=int, default=None, help="record raw netlink replies for this long")
    p.add_argument("--seed", type=int, help="another run of the same scenario")
    p.add_argument("--duration", type=float, help="seconds, instead of the scenario's")
    return p.parse_args()


def summary(truth: dict, wall_s: float) -> str:
    end = truth["increase"]
    seconds = truth["seconds"][-1]["t_s"]
    mbps = sum(flow["received_bytes"] for flow in truth["flows"]) * 8 / seconds / 1e6
    spurious = sum(flow.get("spurious", 0) for flow in truth["flows"])
    return (f"lab: {truth['ap']}: {len(truth['flows'])} flows {mbps:.1f} Mbit/s, queue drops {truth['queue_drops']} "
            f"(codel {end['txq_drops']}, full {end['wlan_tx_dropped']}, qdisc {end['qdisc_drops']}), MAC failures {truth['mac_failures']}, "
            f"retries {end['tx_retries']}, TCP retransmissions down {truth['down_retrans_segs']} up {truth['up_retrans_segs']}, spurious {spurious}; "
            f"{wall_s:.0f} s of wall time")


def main() -> int:
    args = arguments()
    try:
        plan = scenario.load(args.scenario)
    except scenario.ScenarioError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    plan.update(exporter=args.exporter if args.exporter and os.path.exists(args.exporter) else "", sink={"kind": "file"},
                pcap=args.pcap, memory_mb=512)
    if args.record_ms is not None:
        plan["record_ms"] = args.record_ms
    if args.seed is not None:
        plan["seed"] = args.seed
    if args.duration is not None:
        plan["duration_s"] = args.duration
        for flow in plan["flows"]:
            flow["stop_s"] = min(flow["stop_s"], args.duration)
        plan["flows"] = [flow for flow in plan["flows"] if flow["start_s"] < args.duration - 1]
    if not plan["exporter"]:
        print(f"lab: no ap-exporter at {args.exporter or '(none asked for)'}: no capture, only the ground truth", file=sys.stderr)
    started = time.monotonic()
    try:
        guest.play(plan, args.out, virtual=not args.real_time)
    except RuntimeError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    for ap in range(plan["aps"]):
        name = plan["name"] if ap == 0 else f"{plan['name']}-{ap}"
        with open(args.out / f"{name}.truth.json") as f:
            print(summary(json.load(f), time.monotonic() - started))
    return 0


if __name__ == "__main__":
    sys.exit(main())
