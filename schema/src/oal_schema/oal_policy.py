"""`policies/oal-policy new|check|list`: make a policy from the template, check policies, list them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import manifest, policy_check, policy_new
from .manifest import ManifestError
from .tables import SchemaError


def folders() -> list[Path]:
    """Folders that hold a policy, rwnd-fair first, whether they are right or not."""
    found = sorted(p.parent for p in manifest.POLICIES.glob("*/policy.yaml"))
    return sorted(found, key=lambda p: p.name != manifest.RWND_FAIR)


def list_() -> int:
    """A line of each policy; 1 when one cannot be read."""
    wrong = 0
    for folder in folders():
        try:
            m = manifest.read(folder)
            models = ", ".join(f"{r.role} {r.kind}{' (optional)' if r.optional else ''}" for r in m.models)
            does = f"{m.law.name} on {m.subject} by {m.action}"
            print(f"{m.name:<20} {does}; {models or 'no model'}; program {m.program}: {m.title}")
        except ManifestError as e:
            print(f"{folder.name:<20} not ok: {e}")
            wrong = 1
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 done, 1 something is wrong, 2 wrong usage."""
    parser = argparse.ArgumentParser(
        prog="oal-policy", description="Policies: one folder each, in policies/ (README.md there)."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser(
        "new", help="make policies/NAME from the template, with law direct, and what is generated of it"
    )
    made.add_argument("name", metavar="NAME", help="lower case letters, digits and -, at most 31")
    checked = commands.add_parser(
        "check", help="manifest, features, bundle; golden vectors equal in C, Java and Python"
    )
    checked.add_argument("name", metavar="NAME", nargs="*", help="policies to check; none: all")
    commands.add_parser("list", help="every policy in a line")
    options = parser.parse_args(arguments)
    if options.command == "list":
        return list_()
    if options.command == "check":
        return policy_check.run(options.name or [p.name for p in folders()], lambda line: print(line, flush=True))
    try:
        files = policy_new.new(options.name)
    except (ManifestError, SchemaError) as e:
        print(f"oal-policy: {e}", file=sys.stderr)
        return 1
    print("\n".join(str(f) for f in files))
    print(f"generated files hold it too; next: edit, make gen, policies/oal-policy check {options.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
