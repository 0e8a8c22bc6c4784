"""lab/run SCENARIO: play a scenario and leave its capture and its ground truth in build/lab of the repository."""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

from . import guest, live, scenario

BUILD = guest.LAB.parent / "build/lab"
EXPORTER = guest.LAB.parent / "ap-exporter/build/ap-exporter"
FOREVER_S = 10 * 365 * 86400.0


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="lab/run", description=__doc__)
    p.add_argument("scenario", help="a name in lab/scenarios, or a path that ends in .yaml")
    p.add_argument("--out", type=pathlib.Path, default=BUILD, help="folder for the results (build/lab)")
    p.add_argument("--exporter", default=os.environ.get("EXPORTER", str(EXPORTER)),
                   help="ap-exporter to run in the guest; '' for none")
    p.add_argument("--sniff-hz", type=float, default=50,
                   help="samples a second of the server's TCP state, to NAME.sender.jsonl.gz (50; 0: none)")
    p.add_argument("--pcap", action="store_true", help="also capture TCP headers with tcpdump (96 bytes each)")
    p.add_argument("--real-time", action="store_true", help="the guest's clock is this machine's, not virtual")
    p.add_argument("--record-ms", type=int, help="record raw netlink replies for this long")
    p.add_argument("--seed", type=int, help="another run of the same scenario")
    p.add_argument("--duration", type=float,
                   help="seconds, instead of the scenario's; a longer run plays it again and again")
    group = p.add_argument_group("live: in real time, streaming to Kafka until --duration, SIGTERM or Ctrl-C")
    group.add_argument("--live", action="store_true")
    group.add_argument("--ap-id", help="name of the AP: the CN of its certificate (default: the scenario)")
    group.add_argument("--brokers", default=os.environ.get("KAFKA_BROKERS", ""),
                       help="HOST:PORT,... on this machine's loopback")
    group.add_argument("--ca", type=pathlib.Path, help="PEM file of the authority; without it the stream is plain text")
    group.add_argument("--certificate", type=pathlib.Path)
    group.add_argument("--key", type=pathlib.Path)
    group.add_argument(
        "--mac-keys",
        type=pathlib.Path,
        help=(
            "file with the AP's batch key, site lab; without it batches carry no MAC, and a platform that checks"
            " refuses them"
        ),
    )
    group.add_argument(
        "--push-url",
        help=(
            "https://127.0.0.1:PORT of the push service, for the AP's agent; needs --ca, --certificate, --key,"
            " --trusted-keys"
        ),
    )
    group.add_argument("--trusted-keys", type=pathlib.Path, help="file of the public keys whose bundles the AP accepts")
    group.add_argument(
        "--rwnd",
        choices=("off", "shadow", "enforce"),
        default="shadow",
        help=(
            "the most that a policy may do on this AP (default: shadow); enforce lowers windows by a program on its"
            " Wi-Fi port"
        ),
    )
    group.add_argument("--mark", choices=("off", "shadow", "enforce"), default="shadow",
                       help="likewise the most that a policy may mark (CE in packets that have ECT)")
    group.add_argument("--sender-certificate", type=pathlib.Path,
                       help="of the server's sniffer, which streams to platform.events.v1 (CN lab)")
    group.add_argument("--sender-key", type=pathlib.Path)
    return p.parse_args()


def prepare(args: argparse.Namespace) -> dict:
    """The scenario's plan with what the command line says."""
    plan = scenario.load(args.scenario)
    plan.update(exporter=args.exporter if args.exporter and os.path.exists(args.exporter) else "", pcap=args.pcap,
                ap_id=args.ap_id, sniff_hz=args.sniff_hz, python=sys.executable)
    if args.exporter and not plan["exporter"]:
        print(f"lab: no ap-exporter at {args.exporter} (make -C ap-exporter build): no capture, only the ground truth",
              file=sys.stderr)
    if args.record_ms is not None:
        plan["record_ms"] = args.record_ms
    if args.seed is not None:
        plan["seed"] = args.seed
    if args.duration is not None or args.live:
        plan["duration_s"] = args.duration or FOREVER_S
    if args.push_url:
        plan["sections"].append({"kind": "rwnd", "mode": args.rwnd, "backend": "bpf"})
        plan["sections"].append({"kind": "mark", "mode": args.mark, "backend": "bpf"})
    if args.live and (not plan["exporter"] or not args.brokers or plan["aps"] != 1):
        raise live.LiveError(
            "a live run needs the exporter (make -C ap-exporter build), --brokers (or KAFKA_BROKERS), and a scenario"
            " with one AP"
        )
    return plan


def kafka(args: argparse.Namespace) -> dict:
    """Options of the two that stream: the AP's exporter and the server's sniffer (None: with TLS it needs a certificate
    of its own).
    """
    files = {
        name: getattr(args, name)
        for name in ("ca", "certificate", "key", "trusted_keys", "mac_keys", "sender_certificate", "sender_key")
    }
    for name, path in files.items():
        if path and not path.exists():
            raise live.LiveError(f"--{name.replace('_', '-')} {path}: there is no such file")
    paths = {name: str(path.resolve()) for name, path in files.items() if path}
    ap = {
        "brokers": args.brokers,
        **{name: paths[name] for name in ("ca", "certificate", "key", "trusted_keys", "mac_keys") if name in paths}
    }
    if args.push_url:
        if missing := {"ca", "certificate", "key", "trusted_keys"} - set(ap):
            raise live.LiveError(
                f"--push-url needs {', '.join('--' + name.replace('_', '-') for name in sorted(missing))} too")
        ap["push_url"] = args.push_url
    sender = {
        "brokers": args.brokers, **{
            name: paths[key]
            for name, key in (("ca", "ca"), ("certificate", "sender_certificate"), ("key", "sender_key"))
            if key in paths
        }
    }
    return {"ap": ap, "sender": sender if "certificate" in sender or "ca" not in sender else None}


def summary(truth: dict, wall_s: float) -> str:
    end, seconds = truth["increase"], truth["seconds"][-1]["t_s"]
    mbps = sum(flow["received_bytes"] for flow in truth["flows"]) * 8 / seconds / 1e6
    spurious = sum(flow["spurious"] for flow in truth["flows"])
    return (
        f"lab: {truth['ap']}: {len(truth['flows'])} flows {mbps:.1f} Mbit/s, queue drops {truth['queue_drops']} (codel"
        f" {end['txq_drops']}, full {end['wlan_tx_dropped']}, qdisc {end['qdisc_drops']}), MAC failures"
        f" {truth['mac_failures']}, retries {end['tx_retries']}, TCP retransmissions down {truth['down_retrans_segs']}"
        f" up {truth['up_retrans_segs']}, spurious {spurious}; {wall_s:.0f} s of wall time"
    )


def main() -> int:
    args = arguments()
    args.out = args.out.resolve()
    started = time.monotonic()
    try:
        plan = prepare(args)
        with live.link(kafka(args)) if args.live else contextlib.nullcontext() as connected:
            plan["live"] = connected
            guest.play(plan, args.out, virtual=not (args.real_time or args.live), timeout_s=plan["duration_s"] + 1800)
    except (scenario.ScenarioError, live.LiveError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    for ap in range(plan["aps"]):
        name = plan["name"] if ap == 0 else f"{plan['name']}-{ap}"
        with open(args.out / f"{name}.truth.json") as f:
            print(summary(json.load(f), time.monotonic() - started))
    return 0


if __name__ == "__main__":
    sys.exit(main())
