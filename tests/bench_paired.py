"""Every figure of `make bench` here and at another commit, measured in turns on the same machine.

usage: python3 tests/bench_paired.py [--rounds N] [--commit COMMIT] [--allow PERCENT] FOLDER...

COMMIT (default: the newest tag, else the first commit) is cloned to `${XDG_CACHE_HOME:-~/.cache}/oal/bench-COMMIT` and
built there. In each round the bench of each FOLDER (those of `tests/bench`) runs at both, and which goes first
alternates, so that what else the machine does weighs on both alike. A row a figure: both means and the change with its
95 % interval (Student, paired by round). build/bench/paired.json has them as a list of {name, value (change, percent),
unit, command, note}. Exit status 1 where a figure is worse by more than --allow percent (default 5), its whole interval
on the wrong side of 0.

Which direction is worse comes from tests/bench_targets.json ("<=": more is worse), for others from the unit: rates
(…/s) are better when they are higher. Figures with no round at one of the two are listed as such.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Student's t, two-sided 95 %, by degrees of freedom
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


def clone(commit: str) -> Path:
    """A work tree of the commit, kept for the next time."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oal" / f"bench-{commit[:12]}"
    if not (cache / ".git").exists():
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(cache)], check=True)
        subprocess.run(["git", "-C", str(cache), "checkout", "--quiet", "--detach", commit], check=True)
    return cache


def measure(tree: Path, folder: str, log: Path) -> dict[str, tuple[float, str]]:
    """name → (value, unit) of one run of the folder's bench; empty where it failed (the log says why)."""
    out = tree / "build/bench"
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.json"):
        old.unlink()
    with log.open("a") as file:
        done = subprocess.run(["make", "--no-print-directory", "-C", folder, "bench"], cwd=tree, stdout=file,
                              stderr=file)
    if done.returncode:
        print(f"  the bench of {folder} failed in {tree}: {log}", file=sys.stderr)
    found = {}
    for path in sorted(out.glob("*.json")):
        content = json.loads(path.read_text())
        for row in content if isinstance(content, list) else [content]:
            found[row["name"]] = float(row["value"]), row["unit"]
    return found


def more_is_worse(name: str, unit: str, targets: dict) -> bool:
    return targets[name][0] == "<=" if name in targets else not unit.endswith(("/s", "/CPU-s", "per CPU-second"))


def change(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Mean change from first to second in percent and half of its 95 % interval (0 with one pair or no spread)."""
    ratios = [100 * (new / old - 1) if old else (0.0 if new == old else 100.0) for old, new in pairs]
    if len(ratios) < 2:
        return ratios[0], 0.0
    half = STUDENT.get(len(ratios) - 1, 2.2) * statistics.stdev(ratios) / len(ratios) ** .5
    return statistics.mean(ratios), half


def report(rounds: dict[str, list[tuple[float, float]]], units: dict[str, str], allow: float,
           command: str) -> list[str]:
    """Print a row a figure, write paired.json, and return the names of those that are worse."""
    targets = json.loads((ROOT / "tests/bench_targets.json").read_text())
    worse, rows = [], []
    print(f"{'figure':52} {'then':>14} {'now':>14} {'unit':14} change")
    for name, pairs in sorted(rounds.items()):
        mean, half = change(pairs)
        cost = mean if more_is_worse(name, units[name], targets) else -mean
        bad = cost > allow and cost - half > 0
        worse += [name] * bad
        then, now = (statistics.mean(side) for side in zip(*pairs, strict=True))
        print(f"{name:52} {then:14,.6g} {now:14,.6g} {units[name]:14} {mean:+.1f} ± {half:.1f} %"
              f"{'   WORSE' if bad else ''}")
        rows.append({"name": f"paired.{name}", "value": round(mean, 2), "unit": "%", "command": command,
                     "note": f"± {half:.2f} over {len(pairs)} rounds; {then:.6g} then, {now:.6g} {units[name]} now"})
    (ROOT / "build/bench").mkdir(parents=True, exist_ok=True)
    (ROOT / "build/bench/paired.json").write_text(json.dumps(rows, indent=1))
    return worse


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commit")
    parser.add_argument("--allow", type=float, default=5)
    options = parser.parse_args()
    git = ["git", "-C", str(ROOT)]
    name = options.commit or subprocess.run([*git, "describe", "--tags", "--abbrev=0"], capture_output=True,
                                            text=True).stdout.strip() or "--max-parents=0 HEAD"
    commit = subprocess.run([*git, "rev-list", "-n", "1", *name.split()], check=True, capture_output=True,
                            text=True).stdout.strip()
    then = clone(commit)
    log = ROOT / "build/bench-paired.log"
    log.parent.mkdir(exist_ok=True)
    rounds: dict[str, list[tuple[float, float]]] = {}
    units: dict[str, str] = {}
    single: set[str] = set()
    for number in range(options.rounds):
        for folder in options.folders:
            found = {}
            for tree in ((then, ROOT) if number % 2 == 0 else (ROOT, then)):
                print(f"round {number + 1} of {options.rounds}: {folder} at {'now' if tree == ROOT else commit[:12]}",
                      file=sys.stderr, flush=True)
                found[tree] = measure(tree, folder, log)
            single |= set(found[then]) ^ set(found[ROOT])
            for figure in set(found[then]) & set(found[ROOT]):
                rounds.setdefault(figure, []).append((found[then][figure][0], found[ROOT][figure][0]))
                units[figure] = found[ROOT][figure][1]
    command = f"python3 tests/bench_paired.py --commit {commit[:12]} --rounds {options.rounds}"
    worse = report(rounds, units, options.allow, f"{command} {' '.join(options.folders)}")
    if single - set(rounds):
        print(f"at one of the two only: {', '.join(sorted(single - set(rounds)))}")
    if worse:
        print(f"worse by more than {options.allow:g} %: {', '.join(worse)}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
