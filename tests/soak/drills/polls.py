"""The push service while its PostgreSQL answers nobody: how soon a kill is heard, and what minutes of it do."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from soak.checks import NONE
from soak.figures import Figure

ROOT = Path(__file__).resolve().parents[3]
TEST, AWAY_TEST = "TestAStalledStoreStopsNoKill", "TestAStoreAwayForMinutes"
AWAY_S = 180
UNITS = {"ms": 1e-3, "s": 1.0, "µs": 1e-6, "m": 60.0, "h": 3600.0}
AWAY = re.compile(r"(\d+) kills were heard by (\d+) of (\d+) APs, the last after (\S+); ready at (\d+) of (\d+) looks;"
                  r" (\d+) polls failed; stored (\S+) after it was back")
SAID = re.compile(r"heard by (\d+) of (\d+) APs; median (\S+), p99 (\S+), last (\S+)")


def seconds(duration: str) -> float:
    """Of a duration as Go prints it, 1m2.5s."""
    return sum(float(n) * UNITS[unit] for n, unit in re.findall(r"([\d.]+)(ms|µs|m|s|h)", duration))


def said(test: str, words: re.Pattern, **environment: str) -> tuple[str, ...]:
    """Run a test of deploy/e2e; the groups of what it says."""
    done = subprocess.run(["go", "test", "-count=1", "-v", "-run", f"^{test}$", "./e2e"], cwd=ROOT / "deploy",
                          env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = words.search(done.stdout)
    assert done.returncode == 0 and found, done.stdout[-3000:]
    return found.groups()


def away() -> list[Figure]:
    """PostgreSQL's packets are swallowed for 3 minutes: every kill is heard, and stored when it is back."""
    drill = "outage-postgres"
    kills, heard, aps, last, ready, looks, failed, stored = said(AWAY_TEST, AWAY, OAL_STORE_AWAY=f"{AWAY_S}s")
    return [
        Figure(f"{drill}.away", AWAY_S, "s", f"deploy/e2e {AWAY_TEST}: a proxy takes connections and answers nothing."
               " Real time, less than 30 minutes: nothing in it goes by the outage's length but polls of 20 s and"
               " tries again, of which there are many"),
        Figure(f"{drill}.kills", int(kills), "kills"),
        Figure(f"{drill}.heard", int(heard), "access points", "", ("==", int(aps))),
        Figure(f"{drill}.last", seconds(last), "s", "from a kill until the last access point heard it", ("<=", 5.0)),
        Figure(f"{drill}.ready", int(ready), "looks", "at /readyz that said so", ("==", int(looks))),
        Figure(f"{drill}.failed_polls", int(failed), "polls", "", NONE),
        Figure(f"{drill}.stored_after", seconds(stored), "s", "that PostgreSQL was back: all of them", ("<=", 30.0)),
    ]


def polls() -> list[Figure]:
    """1,000 access points poll while a kill is sent and the store's packets are swallowed; nothing compressed."""
    drill = "kill-store-away"
    heard, aps, median, p99, last = said(TEST, SAID)
    note = f"deploy/e2e {TEST}: PostgreSQL behind a proxy that takes connections and answers nothing"
    return [
        Figure(f"{drill}.heard", int(heard), "access points", note, ("==", int(aps))),
        Figure(f"{drill}.p50", seconds(median), "s", note),
        Figure(f"{drill}.p99", seconds(p99), "s", note, ("<=", 1.0)),
        Figure(f"{drill}.last", seconds(last), "s", note),
    ]
