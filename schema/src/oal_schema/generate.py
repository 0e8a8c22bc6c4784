"""Write everything that is derived from the contract.

python -m oal_schema.generate            write schema/generated
python -m oal_schema.generate --check    exit 1 and name the files that are stale
"""

from __future__ import annotations

import argparse
import sys

from . import emit_c, emit_java, emit_java_rows, emit_policy, emit_text, policy_list, rollout_metrics
from .bundle_law import RWND_FAIR
from .manifest import POLICIES
from .model import ROOT, load
from .program_file import to_bytes


def outputs() -> dict[str, bytes]:
    """Path from `schema/generated/` → content."""
    s = load()
    out: dict[str, str | bytes] = {
        "c/oal_schema.h": emit_c.header(s),
        "c/oal_schema.c": emit_c.source(s),
        "c/oal_features.h": emit_c.features_header(s),
        "c/oal_features.c": emit_c.features_source(s),
        "c/oal_policy.h": emit_policy.c_header(s.policy),
        "c/oal_policy.c": emit_policy.c_source(s.policy),
        "policy.schema.json": emit_policy.json_schema(s.policy),
        "python/oal_tables.py": emit_text.python_dtypes(s),
        "schema.json": emit_text.schema_json(s),
        "reference.md": emit_text.reference(s),
        "policies.json": emit_text.policies_json(s),
        "rollout_metrics.json": rollout_metrics.as_json(),
        # The push service embeds its copy: Go takes nothing from outside a module.
        "../../deploy/internal/release/rollout_metrics.json": rollout_metrics.as_json(),
    }
    for name, text in (emit_java.files(s) | emit_java_rows.files(s.stream_tables, s.messages)).items():
        out[f"java/oal/schema/{name}"] = text
    for name, text in emit_text.clickhouse_columns(s).items():
        out[f"clickhouse/{name}.columns.sql"] = text
    for p in s.programs:
        out[f"features/{p.name}.oalf"] = to_bytes(p.words, p.decision_interval_us)
        out[f"features/{p.name}.json"] = emit_text.program_json(p)
    return {k: v.encode() if isinstance(v, str) else v for k, v in out.items()}


def stale(out: dict[str, bytes]) -> list[str]:
    """Files that differ from what would be written, or that nothing writes any more."""
    base = ROOT / "generated"
    wrong = [k for k, v in out.items() if not (base / k).is_file() or (base / k).read_bytes() != v]
    extra = [
        str(p.relative_to(base))
        for p in base.rglob("*")
        if p.is_file() and str(p.relative_to(base)) not in out and "__pycache__" not in str(p)
    ]
    return sorted(wrong + extra)


def write(out: dict[str, bytes]) -> None:
    """Write what is stale, and remove what nothing writes any more."""
    base = ROOT / "generated"
    for name in stale(out):
        path = base / name
        if name not in out:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(out[name])


def declare_numbers(write_it: bool) -> list[str]:
    """Numbers of numbers.yaml become fields of bundle.proto's Policy; the file's name if it lacked one."""
    proto = ROOT / "proto" / "oal" / "bundle.proto"
    old = proto.read_text(encoding="utf-8")
    new = policy_list.declare((POLICIES / RWND_FAIR / "numbers.yaml").read_text(encoding="utf-8"), old)
    if new == old:
        return []
    if write_it:
        proto.write_text(new, encoding="utf-8")
    return ["../proto/oal/bundle.proto"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a committed file is stale")
    args = parser.parse_args()
    undeclared = declare_numbers(write_it=not args.check)
    out = outputs()
    wrong = undeclared + stale(out)
    if args.check:
        if wrong:
            print("stale generated files:\n  " + "\n  ".join(wrong) + "\nfix: make gen", file=sys.stderr)
        return bool(wrong)
    write(out)
    print(f"schema: {len(out)} generated files, {len(wrong)} rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
