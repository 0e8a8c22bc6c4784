"""How many access points at the operating point this machine serves, and what each stage takes for it.

    make fleet APS=1000 [SECONDS=300]      writes build/bench/fleet.json; `--aps N --no-search` holds that many

The lab's operating point (10 stations, 20 neighbours, about 1,500 packets/s, every header) is made once by the real
exporter and played as many access points by `ap-fleet` (ap-exporter), each with its own name, clock phase and MAC, over
TLS into the real Kafka; Flink, labels, features, items, ClickHouse with its rollups and Telegraf run as in `make demo`.
Trainer, registry and push are left out: their figures are benchmarks of their own (training, model-registry, deploy).

The number grows while what Kafka holds unread stays bounded (the newest row of ClickHouse is at most BOUND_S behind and
does not fall back further), then the last number that held is played for SECONDS, and must hold that long.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "platform/local/src"), str(ROOT / "platform/security/tests")]

from oal_local.platform import Platform  # noqa: E402
from sockets import tree  # noqa: E402

BENCH = ROOT / "build/bench"
OPERATING_POINT = ROOT / "build/lab/operating-point.oalcap"
FLEET = ROOT / "ap-exporter" / "build" / "ap-fleet"
BOUND_S = 10.0
STEP_S = 35
WARM_S = 15  # of a step, not judged: the JVM compiles, connections come up
#: Rows in checkpoints this far apart: with hundreds of access points one second makes many small inserts.
CHECKPOINT = "5s"


def say(text: str) -> None:
    print(f"fleet: {text}", file=sys.stderr, flush=True)


def of_tree(pid: int, read: Callable[[Path], float]) -> float:
    """What `read` makes of a process's folder of /proc, summed over the process and all below it."""
    total = 0
    for each in tree(pid):
        try:
            total += read(Path(f"/proc/{each}"))
        except OSError:
            continue  # it ended
    return total


def cpu_s(process: Path) -> float:
    """CPU seconds used so far."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: Path) -> int:
    """Bytes."""
    return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def proportional(process: Path) -> int:
    """Bytes; of a page that several processes share, each one's part, so that a sum counts it once."""
    return next((int(line.split()[1]) * 1024
                 for line in (process / "smaps_rollup").read_text().splitlines() if line.startswith("Pss:")), 0)


def services(platform: Platform) -> dict[str, int]:
    """Process ids by name."""
    return {row["name"]: row["pid"] for row in platform.status() if row["pid"]}


class Fleet:
    """The playing process."""

    def __init__(self, platform: Platform, aps: int):
        options = platform.kafka.ap("ap-fleet", plays=aps)
        self.aps = aps
        self.command = [
            str(FLEET), "--aps",
            str(aps), "--capture",
            str(OPERATING_POINT), "--brokers", platform.kafka.bootstrap, "--ca", options["ssl.ca.location"],
            "--certificate", options["ssl.certificate.location"], "--key", options["ssl.key.location"], "--mac-masters",
            str(platform.state.mac_masters), "--prefix", "fleet", "--site", "fleet"
        ]
        self.last: dict = {}

    def __enter__(self) -> Fleet:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.rest = ""
        return self

    def __exit__(self, *_) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.status()

    def status(self) -> dict:
        """The latest line that it printed."""
        while chunk := self.process.stdout.read():
            *lines, self.rest = (self.rest + chunk.decode()).split("\n")
            self.last = json.loads(lines[-1]) if lines else self.last
        if self.process.poll():
            raise SystemExit(f"ap-fleet ended with {self.process.returncode}")
        return self.last


def used(platform: Platform, fleet: Fleet) -> dict[str, tuple[float, int]]:
    """(CPU seconds so far, resident bytes) of each service and of the player, with what runs below them."""
    return {
        name: (of_tree(pid, cpu_s), of_tree(pid, resident))
        for name, pid in {**services(platform), "ap-fleet": fleet.process.pid}.items()
    }


def behind_s(platform: Platform) -> float:
    """Age of the newest batch that is a row, the worst of the topics that carry one per interval."""
    rows = platform.clickhouse.rows(
        "SELECT topic, dateDiff('millisecond', max(kafka_ts), now64(3)) / 1000 AS s FROM oal.batch"
        " WHERE inserted_at > now() - 120 AND topic IN ('ap.samples.v1', 'ap.packets.v1') GROUP BY topic")
    return max((row["s"] for row in rows), default=float("inf"))


def rows_per_s(platform: Platform, seconds: float) -> float:
    return platform.clickhouse.rows(
        f"SELECT sum(rows) / {seconds} AS n FROM oal.batch WHERE inserted_at > now() - {seconds}")[0]["n"] or 0.0


def play(platform: Platform, aps: int, seconds: float) -> dict:
    """Play that many for so long. `held`: never further behind than BOUND_S after the warm-up, and nothing let go."""
    with Fleet(platform, aps) as fleet:
        started, seen = time.monotonic(), []
        while time.monotonic() - started < WARM_S:
            time.sleep(2)
            fleet.status()
        before, since = used(platform, fleet), time.monotonic()
        while time.monotonic() - started < seconds:
            seen.append(behind_s(platform))
            if seen[-1] > 3 * BOUND_S:
                break
            time.sleep(2)
            fleet.status()
        after, passed = used(platform, fleet), time.monotonic() - since
        rows = rows_per_s(platform, min(60, int(passed)))
    said = fleet.last
    cores = {name: (after[name][0] - before.get(name, (0, 0))[0]) / passed for name in after}
    result = {
        "aps": aps, "held": bool(seen) and max(seen) <= BOUND_S and not said.get("let_go"),
        "behind_max_s": max(seen, default=None), "behind_last_s": seen[-1] if seen else None,
        "seconds": round(time.monotonic() - started), "rows_per_s": rows, "cores": cores,
        "memory": {name: value[1] for name, value in after.items()}, "source": said
    }
    say(
        f"{aps} access points: {'held' if result['held'] else 'not held'}, at most {result['behind_max_s']:.1f} s"
        f" behind, {rows:,.0f} rows/s, "
        + ", ".join(
            f"{name} {value:.2f}" for name, value in sorted(cores.items(), key=lambda x: -x[1]) if value >= 0.01
        )
        + " cores"
    )
    return result


def drain(platform: Platform) -> None:
    """Until ClickHouse has caught up: what one step left must not be the next one's burden."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        pending = platform.clickhouse.rows("SELECT count() AS n FROM oal.batch WHERE inserted_at > now() - 8")[0]["n"]
        if not pending:
            return
        time.sleep(2)


def search(platform: Platform, most: int) -> tuple[int, list[dict]]:
    """The largest number that holds for a step, within an eighth."""
    held, failed, steps = 0, None, []
    aps = min(most, 48)
    while True:
        steps.append(play(platform, aps, STEP_S))
        drain(platform)
        if steps[-1]["held"]:
            held = aps
        else:
            failed = aps
        if held == most or (failed and failed - held <= max(2, held // 8)):
            return held, steps
        aps = min(most, held * 2) if failed is None else (held + failed) // 2


def report(result: dict, steps: list[dict], command: str) -> list[dict]:
    aps = result["aps"]
    note = (
        f"{result['seconds']} s, lab's operating-point replayed by ap-fleet over TLS with MACs, checkpoint every"
        f" {CHECKPOINT}, {os.cpu_count()} cores shared by all; steps tried: "
        + ", ".join(f"{s['aps']} {'held' if s['held'] else 'not'}" for s in steps)
    )
    out = [{"name": "fleet.aps", "value": aps, "unit": "access points", "command": command, "note": note}, {
        "name": "fleet.behind_max_seconds", "value": result["behind_max_s"], "unit": "s", "command": command,
        "note": note
    }, {
        "name": "fleet.rows_per_second", "value": result["rows_per_s"], "unit": "rows/s", "command": command,
        "note": note
    }]
    for name, cores in sorted(result["cores"].items(), key=lambda x: -x[1]):
        out.append({
            "name": f"fleet.cores.{name}", "value": cores, "unit": "cores", "command": command,
            "note": f"{aps} access points"
        })
        out.append(
            {
                "name": f"fleet.cores_at_10000.{name}",
                "value": cores / aps * 10_000,
                "unit": "cores",
                "command": command,
                "note": (
                    f"projection, straight line through {aps} access points and nothing: what a batch and a row cost,"
                    " not what a cluster adds"
                ),
            }
        )
        out.append({
            "name": f"fleet.memory.{name}", "value": result["memory"][name], "unit": "B", "command": command,
            "note": f"resident, {aps} access points"
        })
    return out


def idle(platform: Platform, seconds: int = 30) -> list[dict]:
    """Memory of the whole platform with nobody connected."""
    time.sleep(seconds)
    each = {name: of_tree(pid, proportional) for name, pid in services(platform).items()}
    note = f"proportional set size after {seconds} s idle; " + ", ".join(
        f"{name} {value / 2**20:.0f} MiB" for name, value in sorted(each.items(), key=lambda x: -x[1]))
    return [{
        "name": "fleet.platform_idle_bytes", "value": sum(each.values()), "unit": "B", "command": "make fleet",
        "note": note
    }]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--aps", type=int, default=1000, help="most access points to try (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=300, help="how long the result must hold (default: %(default)s)")
    parser.add_argument("--no-search", action="store_true", help="play --aps for --seconds and say whether it held")
    options = parser.parse_args()
    if not OPERATING_POINT.exists():
        say("playing the lab's operating point once, for its capture (minutes)")
        subprocess.run([ROOT / "lab/run", "operating-point"], check=True)
    command = f"make fleet APS={options.aps} SECONDS={options.seconds}"
    BENCH.mkdir(parents=True, exist_ok=True)
    state = ROOT / "build" / "fleet-platform"
    with Platform(state, ports="auto") as platform:
        say("memory of the idle platform, half a minute")
        figures = idle(platform)
    with Platform(state, ports="auto", only=["data", "observe"], checkpoint_interval=CHECKPOINT,
                  partitions=4) as platform:
        held, steps = (options.aps, []) if options.no_search else search(platform, options.aps)
        if not held:
            say("not even the first number held")
            return 1
        result = play(platform, held, options.seconds)
        while not result["held"] and held > 2 and not options.no_search:
            steps.append(result)
            drain(platform)
            held = held * 9 // 10
            result = play(platform, held, options.seconds)
    figures += report(result, steps, command)
    (BENCH / "fleet.json").write_text(json.dumps(figures, indent=1) + "\n")
    first = max((name for name in result["cores"] if name != "ap-fleet"), key=lambda name: result["cores"][name])
    print(
        f"{result['aps']} access points held for {result['seconds']} s, at most {result['behind_max_s']:.1f} s behind;"
        f" {result['rows_per_s']:,.0f} rows/s. Of the machine's {os.cpu_count()} cores"
        f" {sum(result['cores'].values()):.1f} were used; the largest share is {first}'s, {result['cores'][first]:.2f}"
        " cores."
    )
    for figure in figures:
        print(f"  {figure['name']:40} {figure['value']:>16,.4g} {figure['unit']}")
    return 0 if result["held"] else 1


if __name__ == "__main__":
    sys.exit(main())
