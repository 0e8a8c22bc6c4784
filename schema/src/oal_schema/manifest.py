"""Manifests of policies: `policies/NAME/policy.yaml`, and the same as `generated/policies.json` has it (README,
"Policies").

A manifest names a policy's subject, feature program, label maker, models, law and action. Nothing else says what
policies there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from .bundle_law import POLICY_NAME, RWND_FAIR, Law, law_of
from .bundle_models import KINDS, MAX_ROLE
from .nodes import BundleError
from .settings import policies

POLICIES = Path(__file__).resolve().parents[3] / "policies"
#: folders of policies/ that are none
IN_FORCE = "in-force"
KEYS = ("name", "title", "subject", "program", "label", "models", "law", "action")
MODEL_KEYS = ("role", "kind", "registered", "optional")
#: subjects that a policy may be about
SUBJECTS = ("ap", "station", "flow", "destination")
#: who makes labels: stream-jobs (congestion), or training, of a host's later sessions (session)
SESSION = "session"
LABELS = ("congestion", SESSION)
PROGRAM = re.compile(r"[a-z][a-z0-9_]{0,30}")
REGISTERED = re.compile(r"[a-z][a-z0-9_-]{0,62}")
#: settings.max_bundle_models, which is not there yet when the generator runs for the first time
MAX_MODELS = 4


class ManifestError(ValueError):
    """A folder that is no policy; the message begins with the file and names the key."""


@dataclass(frozen=True)
class ModelPlan:
    """One model of a policy: role in the bundle, kind, name in MLflow, and whether a bundle may do without it."""

    role: str
    kind: str
    registered: str
    optional: bool = False


@dataclass(frozen=True)
class Manifest:
    """What a policy is. `law` holds subject and action too, as a bundle does."""

    name: str
    title: str
    program: str
    label: str
    models: tuple[ModelPlan, ...]
    law: Law

    @property
    def subject(self) -> str:
        return self.law.subject

    @property
    def action(self) -> str:
        return self.law.action

    @property
    def release_name(self) -> str:
        """What its bundles are called: the registered model of role class; without models the policy itself."""
        head = self.role("class") or next(iter(self.models), None)
        return head.registered if head else self.name

    def role(self, name: str) -> ModelPlan | None:
        """The model of a role, or None."""
        return next((m for m in self.models if m.role == name), None)

    def columns(self) -> dict:
        """The manifest as in policies.json."""
        return {
            "name": self.name,
            "title": self.title,
            "subject": self.subject,
            "program": self.program,
            "label": self.label,
            "models": [{k: getattr(m, k) for k in MODEL_KEYS} for m in self.models],
            "law": {"name": self.law.name, "values": list(self.law.values)},
            "action": self.action,
        }


def of(v: object, where: str) -> Manifest:
    """A manifest of the mapping that a file holds, checked. `where` begins every message."""
    _keys(v, KEYS, KEYS, where)
    for key in ("name", "title", "subject", "program", "label", "action"):
        if not isinstance(v[key], str) or not v[key].strip():
            raise ManifestError(f"{where}: {key} is {v[key]!r}; a text")
    if not POLICY_NAME.fullmatch(v["name"]) or v["name"] == IN_FORCE:
        raise ManifestError(f"{where}: name {v['name']!r}; {POLICY_NAME.pattern}, and not {IN_FORCE}")
    if v["subject"] not in SUBJECTS:
        raise ManifestError(f"{where}: subject {v['subject']!r}; one of {', '.join(SUBJECTS)}")
    if not PROGRAM.fullmatch(v["program"]):
        raise ManifestError(f"{where}: program {v['program']!r}; {PROGRAM.pattern}")
    if v["label"] not in LABELS:
        raise ManifestError(f"{where}: label {v['label']!r}; label makers are {', '.join(LABELS)}")
    models = _models(v["models"], where)
    _keys(v["law"], ("name", "values"), ("name",), f"{where}: law")
    values = v["law"].get("values") or []
    if not isinstance(values, list) or any(type(x) is not int for x in values):
        raise ManifestError(f"{where}: law.values {values!r}; a list of whole numbers")
    try:
        law = law_of(
            {"name": v["law"]["name"], "subject": v["subject"], "action": v["action"], "values": values},
            {m.role: m.kind for m in models if not m.optional or m.role != "class"},
        )
    except BundleError as e:
        raise ManifestError(f"{where}: {e.detail}") from None
    return Manifest(v["name"], v["title"], v["program"], v["label"], models, law)


def _models(v: object, where: str) -> tuple[ModelPlan, ...]:
    if not isinstance(v, list) or len(v) > MAX_MODELS:
        raise ManifestError(f"{where}: models is a list of at most {MAX_MODELS}; [] where the law needs none")
    out = []
    for i, m in enumerate(v):
        at = f"{where}: models[{i}]"
        _keys(m, MODEL_KEYS, MODEL_KEYS[:3], at)
        plan = ModelPlan(m["role"], m["kind"], m["registered"], m.get("optional", False))
        if not isinstance(plan.role, str) or not re.fullmatch(rf"[!-~]{{1,{MAX_ROLE}}}", plan.role):
            raise ManifestError(f"{at}: role {plan.role!r}; 1 to {MAX_ROLE} printable characters")
        if plan.role in [o.role for o in out]:
            raise ManifestError(f"{at}: role {plan.role} is there twice")
        if plan.kind not in KINDS:
            raise ManifestError(f"{at}: kind {plan.kind!r}; one of {', '.join(KINDS)}")
        if not isinstance(plan.registered, str) or not REGISTERED.fullmatch(plan.registered):
            raise ManifestError(f"{at}: registered {plan.registered!r}; {REGISTERED.pattern}")
        if not isinstance(plan.optional, bool):
            raise ManifestError(f"{at}: optional {plan.optional!r}; true or false")
        out.append(plan)
    if out and "class" not in [o.role for o in out]:
        raise ManifestError(f"{where}: models without one of role class, whose versions name a release")
    return tuple(out)


def _keys(v: object, known: tuple[str, ...], needed: tuple[str, ...], where: str) -> None:
    if not isinstance(v, Mapping):
        raise ManifestError(f"{where}: it is `key: value`, not {type(v).__name__}")
    if unknown := [k for k in v if k not in known]:
        raise ManifestError(f"{where}: unknown key {unknown[0]}; there are {', '.join(known)}")
    if missing := [k for k in needed if k not in v]:
        raise ManifestError(f"{where}: {missing[0]} is missing")


def read_yaml(path: Path) -> object:
    """What a file of a policy's folder holds. ManifestError names folder, file and line when it is no YAML."""
    where = f"{path.parent.name}/{path.name}"
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as e:
        raise ManifestError(f"{where}: cannot be read: {e}") from None
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        raise ManifestError(f"{where}:{mark.line + 1 if mark else 1}: no YAML: {getattr(e, 'problem', e)}") from None


def read(folder: Path) -> Manifest:
    """Read `policy.yaml` of a folder. ManifestError names the file and the first thing that is wrong."""
    where = f"{folder.name}/policy.yaml"
    found = of(read_yaml(folder / "policy.yaml"), where)
    if found.name != folder.name:
        raise ManifestError(f"{where}: name {found.name} is not the folder's, {folder.name}")
    return found


def load(folder: Path = POLICIES) -> list[Manifest]:
    """Every policy of a folder: rwnd-fair first, then by name. ManifestError, also when two share what is theirs alone.
    """
    out = [read(p.parent) for p in sorted(folder.glob("*/policy.yaml"))]
    out.sort(key=lambda m: (m.name != RWND_FAIR, m.name))
    if not out or out[0].name != RWND_FAIR:
        raise ManifestError(f"{folder}: no policy {RWND_FAIR}; the numbers of all policies are its")
    programs: dict[str, str] = {}
    registered: dict[str, str] = {}
    for m in out:
        for what, names, taken in (
            ("program", [m.program], programs),
            ("registered", [r.registered for r in m.models], registered),
        ):
            for name in names:
                if name in taken:
                    raise ManifestError(
                        f"{m.name}/policy.yaml: {what} {name} is that of {taken[name]}; each has its own"
                    )
                taken[name] = m.name
    return out


def known() -> dict[str, Manifest]:
    """Policies of this release by name, rwnd-fair first, as `make gen` saw them."""
    return {v["name"]: of({k: v[k] for k in KEYS}, "policies.json") for v in policies()}
