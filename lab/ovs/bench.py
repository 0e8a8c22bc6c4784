"""What rewrite_rwnd and mark_ce cost in the kernel's data path, per packet, in real time: python -m ovs.bench
RESULT.json (from lab/).
"""
import json
import subprocess
import sys
from pathlib import Path

from host import guest, scenario

OUT = guest.LAB.parent / "build/lab/ovs-bench"


def figure(name: str, value: float, unit: str, note: str) -> dict:
    return {"name": name, "value": value, "unit": unit, "command": "make -C lab bench-ovs", "note": note}


def main(result: Path) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    subprocess.run([
        "gcc", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-o", OUT / "forward", guest.LAB / "ovs/forward.c"
    ], check=True)
    programs = subprocess.run([guest.LAB / "ovs/build.sh"], check=True, stdout=subprocess.PIPE,
                              text=True).stdout.strip()
    plan = {
        **scenario.plan("ovs", {"stations": [{"name": "client"}]}), "ovs": programs, "forward": str(OUT / "forward")
    }
    folder = guest.play(plan, OUT, virtual=False, extra=["MAIN=ovs.bench_inside"], timeout_s=600)
    ns = json.loads((folder / "ovs.bench.json").read_text())
    plain, lowered, alone = (ns[k] - ns["handed_in"] for k in ("plain", "lowered", "left_alone"))
    figures = [
        figure(
            "rwnd_ovs_native_over_plain",
            round(lowered / plain, 2),
            "ratio",
            f"an ACK through Open vSwitch's kernel data path in the lab's guest: {lowered} ns with its window lowered,"
            f" {plain} ns plain; handing it in ({ns['handed_in']} ns) taken off both; the shortest of 5,000 bursts",
        ),
        figure(
            "rwnd_ovs_native_added",
            lowered - plain,
            "ns",
            f"that rewrite_rwnd adds to an ACK ({alone - plain} ns where the window is low enough already)",
        ),
        figure(
            "rwnd_ovs_slow_path",
            round(ns["by_vswitchd"] / 1000, 1),
            "µs",
            "an ACK where the kernel does not know the action and vswitchd carries it out, in the guest",
        ),
    ]
    figures += [
        figure(
            f"mark_ovs_native_{name}",
            ns[name] - ns["plain"],
            "ns",
            f"that mark_ce adds to an ACK {which}, in the kernel's data path",
        ) for name, which in (
            ("marked", "with ECT(1), which is marked"),
            ("spaced", "with ECT(0), of which some are marked"),
            ("not_ect", "without ECT"),
        )
    ] + [
        figure(
            "mark_ovs_slow_path",
            round(ns["marked_by_vswitchd"] / 1000, 1),
            "µs",
            "a marked packet where the kernel does not know the action and vswitchd carries it out, in the guest",
        ),
    ]
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps(figures, indent=1) + "\n")
    for f in figures:
        print(f"{f['name']}: {f['value']:,} {f['unit']}  ({f['note']})")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
