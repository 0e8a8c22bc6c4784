#!/usr/bin/env python3
"""CPU of the whole daemon at 250 Hz: one AP of a capture is replayed in real time, without agent, predicting, and with
control in shadow
(a replay cannot be clamped: the law runs and reports, nothing is set). From 10 s after the start to 40 s.
usage: cpu.py BINARY CAPTURE RESULT.json"""

import sys
from pathlib import Path

result, capture = sys.argv[3], Path(sys.argv[2]).resolve()
sys.argv[1:] = [
    sys.argv[1],
    sys.argv[1],
]  # outside.py takes the binary from here, and has no use for its second argument
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import outside  # noqa: E402
from result import write  # noqa: E402
from service import push_service  # noqa: E402

FROM_S, TO_S = 10, 40


def permille(text: str) -> tuple[float, dict]:
    """CPU time of the daemon per mille of a core, and its last status."""
    with outside.Folder() as folder:
        process, agent = push_service(folder, "control") if "@agent" in text else (None, "")
        try:
            with outside.Daemon(
                folder, "@exporter\n" + text.replace("@agent", agent + " option neighbours_s 0\n")
            ) as daemon:
                def at(seconds: int) -> dict:
                    return outside.until(
                        lambda: (s := daemon.status())["uptime_us"] >= seconds * 1_000_000 and s,
                        f"{seconds} s of uptime",
                        seconds + 30,
                    )
                first, last = at(FROM_S), at(TO_S)
        finally:
            if process:
                process.stdin.close()
                process.wait()
    return (last["cpu_us"] - first["cpu_us"]) / (last["uptime_us"] - first["uptime_us"]) * 1000, last


replay = f"config replay\n option file {capture}\n option loop 1\n"
figures = []
for name, text, note in (
    ("exporter_cpu", replay, "no agent"),
    ("exporter_cpu_predicting", replay + "@agent", "agent, features and a tree of 255 nodes"),
    (
        "exporter_cpu_control",
        replay + "@agent" + "config rwnd\n option mode shadow\n option kill_file ''\n",
        "the same and control every 20 ms",
    ),
):
    value, status = permille(text)
    if "@agent" in text:
        assert status["agent"]["decisions"] > 200, status["agent"]
    figures.append(
        {
            "name": name,
            "value": round(value, 1),
            "unit": "permille of a core",
            "command": "make -C ap-exporter bench-cpu",
            "note": (
                f"{note}; replay of {capture.name} at 250 Hz, ten stations, to a file; decoding the capture "
                f"included"
            ),
        }
    )
write(result, figures)
