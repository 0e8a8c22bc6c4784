"""Files of policies/in-force: one YAML file for a policy and a scope, and which of a folder's files is whose.

policy, mode, name, version, applies_to: fleet | site/SITE | ap/AP_ID, control: {number: value},
weights: {server port: permille}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from .bundle_law import RWND_FAIR
from .manifest import known
from .nodes import BundleError
from .policy import MAX_VERSION, SHADOW, Policy, make, spec

KEYS = ("name", "version", "applies_to", "mode", "control", "weights", "policy")
NEEDED = KEYS[:4]
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
APPLIES_TO = re.compile(r"fleet|(site|ap)/[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
INTEGER = re.compile(r"0|[1-9][0-9]*")


class PolicyError(ValueError):
    """A file that is no policy, or a folder that is none; the message begins with file and line."""


@dataclass(frozen=True)
class PolicyFile:
    """One file: what is in force of policy `of_policy` at the access points `fleet`, `site/SITE` or `ap/AP_ID`."""

    path: Path
    applies_to: str
    policy: Policy
    of_policy: str = RWND_FAIR


@dataclass(frozen=True)
class Policies:
    """What is in force of one policy, rwnd-fair unless `of_policy` was asked.

    files    by what they apply to; one of rwnd-fair's is the fleet's
    others   files of the other policies, by policy and scope
    policy   whose `files` are; without a file, or one for the fleet, the policy is in shadow with default numbers
    """

    files: Mapping[str, PolicyFile]
    others: Mapping[str, Mapping[str, PolicyFile]] = field(default_factory=dict)
    policy: str = RWND_FAIR

    def of_policy(self, name: str) -> Policies:
        """The same of another policy."""
        return self if name == self.policy else Policies(self.others.get(name, {}), {}, name)

    def of(self, *scopes: str) -> Policy:
        """What the first scope says that has a file: name them from the most specific on. The fleet's is the last
        resort.
        """
        found = next((self.files[s].policy for s in (*scopes, "fleet") if s in self.files), None)
        return found or make(self.policy, 1, SHADOW)

    def of_ap(self, ap_id: str, site: str) -> Policy:
        return self.of(f"ap/{ap_id}", f"site/{site}")

    def narrower(self) -> list[str]:
        """Sites and access points that have a file of their own, sites first. Who is at a site is not said here."""
        return sorted((s for s in self.files if s != "fleet"), key=lambda s: (s.startswith("ap/"), s))

    def every(self) -> list[PolicyFile]:
        """Files of all policies."""
        return [*self.files.values(), *(f for files in self.others.values() for f in files.values())]

    def not_raised(self, known: Collection[Policy]) -> list[PolicyFile]:
        """Files that changed and kept their version: one of the `known` has this name and version, and says something
        else.
        """
        return [
            f
            for f in self.every()
            if any((p.name, p.version) == (f.policy.name, f.policy.version) and p != f.policy for p in known)
        ]


def read(path: Path) -> PolicyFile:
    """Read one file. PolicyError names file and line of the first thing that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise PolicyError(f"{path.name}: cannot be read: {e}") from None
    return _Reader(path).file(text)


def load(folder: Path) -> Policies:
    """Read every `*.yaml` of a folder (not of folders in it). PolicyError, one line for each file that is wrong."""
    if not folder.is_dir():
        raise PolicyError(f"{folder}: no such folder of policies")
    wrong: list[str] = []
    files: dict[str, dict[str, PolicyFile]] = {RWND_FAIR: {}}
    for path in sorted(folder.glob("*.yaml")):
        try:
            one = read(path)
            of_policy = files.setdefault(one.of_policy, {})
            if one.applies_to in of_policy:
                other = of_policy[one.applies_to].path.name
                raise PolicyError(f"{path.name}: applies to {one.applies_to}, as {other} does; one policy each")
            of_policy[one.applies_to] = one
        except PolicyError as e:
            wrong.append(str(e))
    if wrong:
        raise PolicyError("\n".join(wrong))
    if "fleet" not in files[RWND_FAIR]:
        raise PolicyError(f"{folder}: no policy applies to the fleet; default.yaml usually does")
    return Policies(files.pop(RWND_FAIR), files)


class _Reader:
    def __init__(self, path: Path):
        self.path = path

    def file(self, text: str) -> PolicyFile:
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as e:
            mark = getattr(e, "problem_mark", None)
            raise PolicyError(
                f"{self.path.name}:{mark.line + 1 if mark else 1}: no YAML: {getattr(e, 'problem', e)}"
            ) from None
        top = self.mapping(node, "a policy")
        for key in top:
            if key not in KEYS:
                self.refuse(top[key][0], f"unknown key {key}; a policy has {', '.join(KEYS)}")
        for key in NEEDED:
            if key not in top:
                raise PolicyError(f"{self.path.name}:1: {key} is missing")
        name = self.text(top["name"][1], "name", NAME, "lower case letters, digits and . _ -, at most 63")
        if name != self.path.stem:
            self.refuse(top["name"][1], f"name {name} is not the file's, {self.path.stem}")
        version = self.integer(top["version"][1], "version", 1, MAX_VERSION)
        applies_to = self.text(top["applies_to"][1], "applies_to", APPLIES_TO, "fleet, site/SITE or ap/AP_ID")
        of_policy = RWND_FAIR
        if "policy" in top:
            there = list(known())
            of_policy = self.text(
                top["policy"][1], "policy", re.compile("|".join(map(re.escape, there))), ", ".join(there)
            )
        modes = spec()["modes"]
        mode = self.text(top["mode"][1], "mode", re.compile("|".join(modes)), ", ".join(modes))
        bounds = {f["name"]: f for f in spec()["fields"]}
        control = self.mapping(top["control"][1], "control") if "control" in top else {}
        for key, (at, _) in control.items():
            if key not in bounds:
                self.refuse(at, f"unknown number {key}; policies/rwnd-fair/numbers.yaml lists them")
        numbers = {
            key: self.integer(value, key, bounds[key]["min"], bounds[key]["max"]) for key, (_, value) in control.items()
        }
        w = spec()["weights"]
        weights = self.mapping(top["weights"][1], "weights") if "weights" in top else {}
        ports = {
            self.integer(at, "port", w["port_min"], w["port_max"]): self.integer(
                value, f"weight of port {key}", w["value_min"], w["value_max"]
            )
            for key, (at, value) in weights.items()
        }
        if len(ports) > w["max"]:
            self.refuse(top["weights"][0], f"{len(ports)} weights; at most {w['max']}")
        try:
            return PolicyFile(self.path, applies_to, make(name, version, modes.index(mode), numbers, ports), of_policy)
        except BundleError as e:  # a rule between two numbers; the first that it names may be a default
            first, _, _ = e.detail.partition(" ")
            self.refuse(control.get(first, top.get("control", top["name"]))[0], e.detail)

    def refuse(self, node, what: str):
        raise PolicyError(f"{self.path.name}:{node.start_mark.line + 1}: {what}")

    def mapping(self, node, what: str) -> dict[str, tuple]:
        """key → (its node, the value's node)"""
        if not isinstance(node, yaml.MappingNode):
            if node is None:
                raise PolicyError(f"{self.path.name}:1: the file is empty")
            self.refuse(node, f"{what} is a list of `key: value`")
        out: dict[str, tuple] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.refuse(key, f"a key of {what} is a word")
            if key.value in out:
                self.refuse(key, f"{key.value} is there twice")
            out[key.value] = key, value
        return out

    def text(self, node, name: str, pattern: re.Pattern, wanted: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or not pattern.fullmatch(node.value):
            self.refuse(node, f"{name} {self.shown(node)}; {wanted}")
        return node.value

    def integer(self, node, name: str, lo: int, hi: int) -> int:
        if not isinstance(node, yaml.ScalarNode) or not INTEGER.fullmatch(node.value) or len(node.value) > 20:
            self.refuse(node, f"{name} {self.shown(node)}; a whole number, {lo} to {hi}")
        value = int(node.value)
        if not lo <= value <= hi:
            self.refuse(node, f"{name} {value}; {lo} to {hi}")
        return value

    @staticmethod
    def shown(node) -> str:
        return repr(node.value[:40]) if isinstance(node, yaml.ScalarNode) else "is a list"
