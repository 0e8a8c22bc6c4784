"""A new policy from the template: its folder, and what is generated of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import generate, manifest
from .bundle_law import POLICY_NAME
from .manifest import IN_FORCE, ManifestError
from .tables import SchemaError

TEMPLATE = Path(__file__).with_name("template")


def new(name: str, folder: Path = manifest.POLICIES) -> list[Path]:
    """Make the policy `name` in `folder`; its files. ManifestError for a name that is none, or is taken."""
    if not POLICY_NAME.fullmatch(name) or name == IN_FORCE:
        raise ManifestError(f"name {name!r}; {POLICY_NAME.pattern}, and not {IN_FORCE}")
    if (folder / name).exists():
        raise ManifestError(f"{folder / name} is there already")
    program = name.replace("-", "_")
    there = {m.program: m.name for m in manifest.load(folder)} | {
        r.registered: m.name for m in manifest.load(folder) for r in m.models
    }
    for taken in (program, name):
        if taken in there:
            raise ManifestError(f"name {name}: policy {there[taken]} has a program or a model {taken}")
    out = []
    (folder / name).mkdir()
    for file in sorted(TEMPLATE.iterdir()):
        text = file.read_text(encoding="utf-8").replace("{{name}}", name).replace("{{program}}", program)
        (folder / name / file.name).write_text(text, encoding="utf-8")
        out.append(folder / name / file.name)
    try:
        generate.write(generate.outputs())
    except SchemaError as e:  # such as another policy that still has the template's features
        shutil.rmtree(folder / name)
        raise ManifestError(f"{name} is not made: {e}") from None
    return out
