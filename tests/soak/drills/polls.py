"""A kill while the push service's PostgreSQL answers nobody: how soon 1,000 waiting access points hear it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from soak.figures import Figure

ROOT = Path(__file__).resolve().parents[3]
TEST = "TestAStalledStoreStopsNoKill"
UNITS = {"ms": 1e-3, "s": 1.0, "µs": 1e-6, "m": 60.0, "h": 3600.0}
SAID = re.compile(r"heard by (\d+) of (\d+) APs; median (\S+), p99 (\S+), last (\S+)")


def seconds(duration: str) -> float:
    """Of a duration as Go prints it, 1m2.5s."""
    return sum(float(n) * UNITS[unit] for n, unit in re.findall(r"([\d.]+)(ms|µs|m|s|h)", duration))


def polls() -> list[Figure]:
    """1,000 access points poll while a kill is sent and the store's packets are swallowed; nothing compressed."""
    drill = "kill-store-away"
    done = subprocess.run(["go", "test", "-count=1", "-v", "-run", f"^{TEST}$", "./e2e"], cwd=ROOT / "deploy",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = SAID.search(done.stdout)
    assert done.returncode == 0 and found, done.stdout[-3000:]
    heard, aps, median, p99, last = found.groups()
    note = f"deploy/e2e {TEST}: PostgreSQL behind a proxy that takes connections and answers nothing"
    return [
        Figure(f"{drill}.heard", int(heard), "access points", note, ("==", int(aps))),
        Figure(f"{drill}.p50", seconds(median), "s", note),
        Figure(f"{drill}.p99", seconds(p99), "s", note, ("<=", 1.0)),
        Figure(f"{drill}.last", seconds(last), "s", note),
    ]
