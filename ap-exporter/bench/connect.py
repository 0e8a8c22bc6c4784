#!/usr/bin/env python3
"""What a connect costs more where `oal-host congestion` chooses for it, with 1 and with 4,096 prefixes: pairs of blocks
of connects over loopback, in a cgroup with its program and in one without (bench_connect.c). Student's 95 % interval of
the pairs' differences. usage: connect.py BINARY BENCH_CONNECT RESULT.json    (as root; needs what `oal-host congestion`
needs, and says what is missing)"""

import json
import os
import random
import statistics
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

binary, bench, result = sys.argv[1:4]
sys.argv[1:] = [binary, binary]  # outside.py takes the binary from here
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from congestion import CGROUPS  # noqa: E402
from outside import TAGS, sh, until  # noqa: E402
from result import write  # noqa: E402

PAIRS, CONNECTS = 100, 500
#: Student's t for 99 degrees of freedom
STUDENT = 1.984
TTL_MS = 60_000  # the most that a choice may last: a run takes a tenth of it
MOST = 4096
LOOPBACK = "127.0.0.0/8"


def prefixes(n: int) -> list[str]:
    """That of loopback, and others: /24 next to /24 and elsewhere, as destinations of a server are."""
    draw, found = random.Random(1), [LOOPBACK]
    seen = set()
    while len(found) < n:
        base = draw.randrange(1, 126) << 16 | draw.randrange(1 << 16)
        for net in range(base, base + draw.choice((1, 1, 4, 16))):
            if net not in seen and len(found) < n and net >> 16 < 127:
                seen.add(net)
                found.append(f"{net >> 16}.{net >> 8 & 255}.{net & 255}.0/24")
    return found


@contextmanager
def place():
    """(namespace with loopback, cgroup for the program, cgroup without)"""
    ns, chosen, plain = next(TAGS), CGROUPS[0] / next(TAGS), CGROUPS[0] / next(TAGS)
    sh(f"ip netns add {ns}")
    sh("ip link set lo up", ns)
    for folder in (chosen, plain):
        folder.mkdir()
    try:
        yield ns, chosen, plain
    finally:
        sh(f"ip netns del {ns}")
        for folder in (chosen, plain):
            until(lambda folder=folder: not (folder / "cgroup.procs").read_text(), "its processes are gone")
            folder.rmdir()


class Agent:
    def __init__(self, cgroup: Path):
        self.process = subprocess.Popen([binary, "congestion", str(cgroup)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        if not first:
            sys.exit(f"bench-connect: this kernel cannot: {self.process.stderr.read().strip()}")

    def ask(self, line: str) -> dict:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["ok"], (line, answer)
        return answer

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def blocks(ns: str, chosen: Path, plain: Path, both: bool) -> list[list[float]]:
    command = ["nsenter", f"--net=/run/netns/{ns}", bench, str(chosen), str(plain), str(PAIRS), str(CONNECTS)]
    said = subprocess.run(command + ["both"] * both, check=True, capture_output=True, text=True).stdout
    return [[float(word) for word in line.split()] for line in said.splitlines()]


def figure(name: str, found: list[list[float]], what: str) -> dict:
    differences = [a - b for a, b, _, _ in found]
    mean = statistics.mean(differences)
    half = STUDENT * statistics.stdev(differences) / len(differences) ** 0.5
    plain, p99, p99_plain = (statistics.median(row[i] for row in found) for i in (1, 2, 3))
    return {
        "name": name,
        "value": round(mean, 2),
        "unit": "us",
        "command": "make -C ap-exporter bench-connect",
        "note": f"{what}; 95 % interval [{mean - half:.2f}, {mean + half:.2f}], {len(found)} pairs of blocks of"
                f" {CONNECTS} connects; without it {plain:.1f} us, p99 {p99_plain:.1f}, with it p99 {p99:.1f}. Left"
                " out: the agent's own work when a session ends, processors that choose at the same time, and caches"
                " that other work has emptied since the connection before",
        "low": round(mean - half, 2),
        "high": round(mean + half, 2),
        "without": round(plain, 2),
        "p99_more": round(p99 - p99_plain, 2),
    }


def main() -> None:
    if os.geteuid() or not CGROUPS:
        sys.exit("bench-connect: it needs root and cgroup2")
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    other = next(name for name in ("reno", "cubic") if name != default)
    figures = []
    with place() as (ns, chosen, plain):
        for n in (1, MOST):
            agent = Agent(chosen)
            try:
                for both in (False, True):
                    for prefix in prefixes(n):
                        agent.ask(f"choose {prefix} {other} {TTL_MS}")
                    before = agent.ask("stats")["stats"]
                    found = blocks(ns, chosen, plain, both)
                    after = agent.ask("stats")["stats"]
                    set_now = after["connections"]["set"] - before["connections"]["set"]
                    assert before["choices"] == n and not after["connections"]["expired"], after
                    assert set_now >= PAIRS * CONNECTS * (1 + both), "each connection had what was chosen for it"
                    ends = "both ends'" if both else "the connecting end's"
                    figures.append(figure(f"cc_connect_{'both_' * both}{n}", found,
                                          f"{n:,} prefix{'es' * (n > 1)} chosen, {ends} congestion control set"))
            finally:
                agent.close()
    write(result, figures)


main()
