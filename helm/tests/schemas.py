"""Schemas of Kubernetes' objects for kubeconform, each in one file, out of those that the package kubernetes-validate
carries.

usage: python schemas.py FOLDER VERSION…      (such as 1.37.0)
"""
import importlib.util
import json
import sys
from pathlib import Path

REFERENCE = "#/$defs/"


def source(version: str) -> Path:
    package = Path(importlib.util.find_spec("kubernetes_validate").origin).parent
    return package / "kubernetes-json-schema" / f"v{version}-local-strict"


def read(file: Path) -> dict:
    return json.loads(file.read_text().replace('"/api/_definitions.json#', '"#').replace('"_definitions.json#', '"#'))


def needed(schema, definitions: dict, found: dict) -> dict:
    """The definitions that a schema refers to, and those that they do."""
    if isinstance(schema, dict):
        name = schema.get("$ref")
        if isinstance(name, str) and name.startswith(REFERENCE) and (name := name.removeprefix(REFERENCE)) not in found:
            found[name] = definitions[name]
            needed(definitions[name], definitions, found)
        for value in schema.values():
            needed(value, definitions, found)
    elif isinstance(schema, list):
        for value in schema:
            needed(value, definitions, found)
    return found


def write(folder: Path, version: str) -> Path:
    """The folder of one version; made once."""
    made = folder / version
    if (made / ".complete").exists():
        return made
    made.mkdir(parents=True, exist_ok=True)
    whole = read(source(version) / "_definitions.json")
    definitions = whole.get("$defs") or whole["definitions"]
    for file in source(version).glob("[!_]*.json"):
        schema = read(file)
        if "x-kubernetes-group-version-kind" in schema and "kind" in (schema.get("properties") or {}):
            schema.pop("$id", None)
            (made / file.name).write_text(json.dumps(schema | {"$defs": needed(schema, definitions, {})}))
    (made / ".complete").touch()
    return made


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        print(write(Path(sys.argv[1]), wanted))
