"""`oal-registry policies check`: are the files right, what do they say, and what would they change?"""

from __future__ import annotations

import sys
from pathlib import Path

from oal_schema.bundle_law import RWND_FAIR
from oal_schema.policy import defaults
from oal_schema.policy_file import Policies, PolicyError, PolicyFile, load, read

from oal_registry import signing_keys
from oal_registry.policy_plan import plan
from oal_registry.policy_reconciler import held_policy
from oal_registry.release_topic import SLOTS, ReleaseTopic


def check(folder: Path, kafka: dict | None, trusted: str = "", out=sys.stdout) -> int:
    """0 when all is right. `kafka`: librdkafka's options, to compare with the releases in force that keys of the file
    `trusted` signed; None: files only.
    """
    wrong: list[str] = []
    try:
        policies = load(folder)
    except PolicyError as error:
        wrong = str(error).splitlines()
    examples = []
    for path in sorted(folder.glob("examples/*.yaml")):
        try:
            examples.append(read(path))
        except PolicyError as error:
            wrong.append(f"examples/{error}")
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    for file in [policies.files["fleet"], *(policies.files[s] for s in policies.narrower())]:
        print(describe(file), file=out)
    for name in sorted(policies.others):
        for _, file in sorted(policies.others[name].items()):
            print(describe(file), file=out)
    for file in examples:
        print(f"{describe(file)} - an example, in force nowhere", file=out)
    return compare(policies, kafka, trusted, out) if kafka is not None else 0


def describe(file: PolicyFile) -> str:
    """One line: whose it is, its mode, and what is not the default."""
    policy, normal = file.policy, defaults()
    said = [
        f"{name} {value} (default {normal[name]})" for name, value in policy.control.items() if value != normal[name]
    ]
    whose = f", policy {file.of_policy}" if file.of_policy != RWND_FAIR else ""
    said += [f"port {port} weighs {weight} permille" for port, weight in policy.weights.items()]
    return (
        f"{file.path.name}: {policy.name}/{policy.version} for {file.applies_to}{whose}: {policy.mode_name},"
        f" {'; '.join(said) or 'every number the default'}"
    )


def compare(policies: Policies, kafka: dict, trusted: str, out) -> int:
    """Say which releases would be made anew; 1 when a file changed without its version."""
    keys = signing_keys.trusted_file(trusted).keys
    topic = ReleaseTopic(kafka, lambda: keys)
    in_force = topic.read()
    topic.close()
    for name, (reason, why) in sorted(topic.refused.items()):
        print(f"{name} does not count: {reason}: {why}", file=sys.stderr)
    held = {r.hash: held_policy(r) for releases in in_force.values() for r in releases.values()}
    stale = [
        f"{f.path.name}: it changed, and its version is still {f.policy.version}, as in force; raise it"
        for f in policies.not_raised(held.values())
    ]
    if stale:
        print("\n".join(stale), file=sys.stderr)
        return 1
    steps = [
        step
        for name, releases in sorted(in_force.items())
        for slot in SLOTS
        for step in plan(slot, releases, policies.of_policy(name), lambda r: held[r.hash])
    ]
    print(
        "\n".join(f"would change {step}" for step in steps)
        or "the releases in force have these policies: nothing would change",
        file=out,
    )
    return 0
