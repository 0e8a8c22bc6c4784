"""Print build/bench/*.json as one table, each figure beside its target, and name those that fall short.

A target is in tests/bench_targets.json: name → [relation, value]. Figures without a target are reported alone.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    targets = json.loads((ROOT / "tests/bench_targets.json").read_text())
    seen, short = set(), []
    print(f"{'figure':52} {'value':>16} {'unit':14} target")
    for path in sorted((ROOT / "build/bench").glob("*.json")):
        found = json.loads(path.read_text())
        for r in found if isinstance(found, list) else [found]:
            relation, bound = targets.get(r["name"], (None, None))
            seen.add(r["name"])
            met = relation is None or (r["value"] <= bound if relation == "<=" else r["value"] >= bound)
            if not met:
                short.append(r["name"])
            print(
                f"{r['name']:52} {r['value']:>16,.6g} {r['unit']:14}"
                f" {'' if relation is None else f'{relation} {bound:,}'}{'' if met else '   FALLS SHORT'}"
            )
    missing = sorted(set(targets) - seen)
    print(f"\n{len(targets) - len(missing) - len(short)} of {len(targets)} targets met"
          + (f"; short: {', '.join(short)}" if short else "")
          + (f"; not measured: {', '.join(missing)}" if missing else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
