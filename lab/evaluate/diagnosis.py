"""Queue or air: rows of `loss_event`, which the stream job's own code makes of an access point's capture, beside what
the lab's kernel wrote of each packet that it lost (lab/medium/losses.c), joined by flow, sequence number and time.

One line a lost packet of downlink TCP data: what lost it (`truth`: queue, air), and the cause that the row says which
covers it (queue, air, both, unknown; or none, where there is no row). A row that no lost packet explains has the truth
`elsewhere`: it was sent again, and this access point had not lost it."""
import bisect
import collections
import csv
import functools
import ipaddress
import json
import pathlib
import subprocess
from collections.abc import Callable

from sniffer import rows as sender_rows
from sniffer import sinks

from . import sender_class

STREAM_JOBS = pathlib.Path(__file__).resolve().parents[2] / "stream-jobs"
LABELS = STREAM_JOBS / "src/main/java/oal/stream/label"
TRUTHS, CAUSES = ("queue", "air"), ("queue", "air", "both", "unknown", "none")
ELSEWHERE = "elsewhere"
TCP = "6"
SNIFF_HZ = 50
#: The kernel stamps a loss after the packet passed the tap, by the same clock; the tap's time is in whole µs.
SLACK_US = 1000
#: What is lost later may not be sent again before the end.
LAST_S = 2.0


@functools.cache
def program() -> pathlib.Path:
    """The stream job's offline tool, built anew where its sources say so."""
    subprocess.run(["make", "--no-print-directory", "-C", STREAM_JOBS, "build"], stdout=subprocess.DEVNULL, check=True)
    return STREAM_JOBS / "items"


def sources() -> list[pathlib.Path]:
    """What a diagnosis is made by, beside the exporter."""
    here = pathlib.Path(__file__)
    return [*sorted(LABELS.glob("*.java")), here, here.with_name("sender_class.py")]


def events(capture: pathlib.Path) -> list[dict]:
    """Rows of `loss_event` of a capture."""
    made = subprocess.run([STREAM_JOBS / "items", "--losses", capture], capture_output=True, check=True)
    return [json.loads(row) for row in made.stdout.splitlines()]


def truth(file: pathlib.Path, device: str) -> list[dict]:
    """Packets with TCP data that were lost on their way from a radio."""
    with open(file) as f:
        return [row for row in csv.DictReader(f) if row["device"] == device and row["cause"] in TRUTHS
                and row["protocol"] == TCP and int(row["payload_bytes"]) > 0]


def flow_of(lost: dict) -> int:
    """The exporter's number of the flow of a downlink packet."""
    client, server = (ipaddress.ip_address(lost[end]).packed for end in ("destination", "source"))
    return sender_rows.flow_id(client, server, int(lost["destination_port"]), int(lost["source_port"]))


def covers(event: dict, seq: int, us: float) -> bool:
    """Whether a row is of the packet that began at `seq` and was lost at a time."""
    ahead = (seq - event["seq"] + (1 << 31)) % (1 << 32) - (1 << 31)
    return 0 <= ahead < event["bytes"] and event["seen"] - SLACK_US <= us <= event["resent"] + SLACK_US


def join(found: list[dict], lost: list[dict], stations: dict[int, str], window_us: tuple[float, float]) -> list[dict]:
    """Lines, in order of time, of packets that were lost in a window of time and of rows seen in it that explain none.
    `stations`: name by the last number of the address; `found`: in order of repetition.
    """
    of_flow, used, out = collections.defaultdict(list), set(), []
    for n, event in enumerate(found):
        of_flow[int(event["flow_id"])].append((event["resent"], n))
    station = {}
    for packet in lost:
        us, flow, seq = int(packet["t_ns"]) / 1e3, flow_of(packet), int(packet["seq"])
        mine = of_flow.get(flow, [])
        after = mine[bisect.bisect_left(mine, (us - SLACK_US, -1)):]
        which = next((n for _, n in after if covers(found[n], seq, us)), None)
        used.add(which)
        station[flow] = stations[ipaddress.ip_address(packet["destination"]).packed[3]]
        if window_us[0] <= us < window_us[1]:
            out.append(_line(station[flow], packet["cause"], us, flow, found[which] if which is not None else None))
    macs = {event["station_mac"]: station[int(event["flow_id"])] for event in found if int(event["flow_id"]) in station}
    for n, event in enumerate(found):
        if n not in used and window_us[0] <= event["seen"] < window_us[1]:
            out.append(_line(macs.get(event["station_mac"]), ELSEWHERE, event["seen"], int(event["flow_id"]), event))
    return sorted(out, key=lambda one: one["us"])


def _line(station: str | None, was: str, us: float, flow: int, event: dict | None) -> dict:
    return {"station": station, "truth": was, "cause": event["cause"] if event else "none", "us": us, "flow": flow,
            "resent_us": event["resent"] if event else None}


def part(lines: list[dict], wanted: Callable[[dict], bool]) -> float | None:
    """Share of the lines; None of none."""
    return sum(map(wanted, lines)) / len(lines) if lines else None


def share(lines: list[dict], was: str, *causes: str, column: str = "cause") -> float | None:
    """Of the rows of packets that `was` lost, those that say one of the causes; None where there are none."""
    return part([one for one in lines if one["truth"] == was and one["cause"] != "none"],
                lambda one: one[column] in causes)


def balanced(lines: list[dict], column: str = "cause") -> float | None:
    """Mean of the shares of queue drops and of losses on the air that are called so; None where one kind is missing."""
    right = [share(lines, was, was, column=column) for was in TRUTHS]
    return None if None in right else sum(right) / 2


def figures(lines: list[dict], retransmissions: int) -> dict:
    """Of a cell. Rows that say both or unknown count as wrong. `retransmissions`: segments that senders sent again in
    the whole run.
    """
    lost = [one for one in lines if one["truth"] != ELSEWHERE]
    rows = [one for one in lines if one["cause"] != "none"]
    told = [one for one in rows if one["truth"] != ELSEWHERE]
    right = balanced(lines)
    sender = {name: balanced(lines, name) for name in sender_class.CLASSES}
    return {
        "losses_queue": sum(one["truth"] == "queue" for one in lost),
        "losses_air": sum(one["truth"] == "air" for one in lost), "cause_balanced": right,
        **{f"{was}_right": share(lines, was, was) for was in TRUTHS}, "queue_called_air": share(lines, "queue", "air"),
        "cause_undecided_ratio": part(told, lambda one: one["cause"] in ("both", "unknown")),
        "loss_coverage": part(lost, lambda one: one["cause"] != "none"), "rows_elsewhere": len(rows) - len(told),
        "rows_per_retransmission": len(rows) / retransmissions if retransmissions else None,
        **{f"{name}_balanced": value for name, value in sender.items()},
        **{f"cause_over_{name}": None if None in (right, value) else right - value for name, value in sender.items()}
    }


def analyse(plan: dict, folder: pathlib.Path) -> dict:
    """Figures and lines of a run of one access point that lies in a folder, with the sender's classes beside."""
    name = plan["name"]
    told = json.loads((folder / f"{name}.truth.json").read_text())
    begin_us = told["begin_ns"] / 1e3
    window_us = begin_us + plan["evaluate"]["warmup_s"] * 1e6, begin_us + (plan["duration_s"] - LAST_S) * 1e6
    found = sorted(events(folder / f"{name}.oalcap"), key=lambda event: event["resent"])
    lines = join(found, truth(folder / f"{name}.losses.csv", "wlan0"),
                 {s["host"]: s["name"] for s in plan["stations"]}, window_us)
    sender_class.add(lines, list(sinks.read(folder / f"{name}.sender.jsonl.gz")), plan["wired"]["delay_ms"] * 500)
    kept = [{key: one[key] for key in ("station", "truth", "cause", *sender_class.COLUMNS)} for one in lines]
    return {"figures": figures(lines, told["down_retrans_segs"]), "lines": kept}
