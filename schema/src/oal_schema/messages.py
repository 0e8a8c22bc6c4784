"""`messages.yaml`: records that are JSON, checked as it is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: type → (smallest, largest) value; of a string and a list these bound the length, and None is no bound
BOUNDS = {
    "string": (0, None),
    "bool": (0, 1),
    "float32": (None, None),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
    "int64[]": (0, None),
}


class MessageError(ValueError):
    """The file contradicts itself; the message names the field."""


@dataclass(frozen=True)
class Field:
    """A field; `min` and `max` bound its value (of a string or list: its length), None where nothing does."""

    name: str
    type: str
    comment: str
    min: float | None
    max: float | None
    default: object = None  #: None: a reader refuses a record without the field
    left_out: bool = False  #: a writer leaves the field out when it has its default


@dataclass(frozen=True)
class Message:
    """A record of `topic`, keyed by the field `key`."""

    name: str
    topic: str
    key: str
    comment: str
    fields: tuple[Field, ...]

    def as_dict(self) -> dict:
        """As in `schema.json`."""
        return {
            "topic": self.topic, "key": self.key, "comment": self.comment, "fields": [_said(f) for f in self.fields]
        }


def _said(field: Field) -> dict:
    """A field as in `schema.json`; what is not left out does not say so."""
    return {k: v for k, v in vars(field).items() if k != "left_out" or v}


def read(source: dict) -> list[Message]:
    """The messages of the parsed YAML. MessageError names what is wrong."""
    return [_message(name, spec) for name, spec in source.items()]


def _message(name: str, spec: dict) -> Message:
    fields = tuple(_field(f"{name}.{f.get('name', '?')}", f) for f in spec["fields"])
    names = [f.name for f in fields]
    if len(set(names)) != len(names):
        raise MessageError(f"{name}: a field is there twice")
    if spec["key"] not in names:
        raise MessageError(f"{name}: key {spec['key']} is none of its fields")
    return Message(name, spec["topic"], spec["key"], spec["comment"], fields)


def _field(where: str, spec: dict) -> Field:
    if unknown := set(spec) - {"name", "type", "comment", "min", "max", "default", "left_out"}:
        raise MessageError(f"{where}: unknown key {sorted(unknown)[0]}")
    if spec.get("type") not in BOUNDS:
        raise MessageError(f"{where}: type {spec.get('type')!r} is none of {', '.join(BOUNDS)}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", spec["name"]) or not spec.get("comment"):
        raise MessageError(f"{where}: a field has a name in lower case and a comment")
    low, high = BOUNDS[spec["type"]]
    least, most = spec.get("min", low), spec.get("max", high)
    if (low is not None and least < low) or (high is not None and most > high):
        raise MessageError(f"{where}: {least} to {most} is more than {spec['type']} holds")
    left_out = spec.get("left_out", False)
    if left_out and not (spec["type"] == "string" and spec.get("default") or spec.get("default") is False):
        raise MessageError(f"{where}: only a string with a default, or a bool that is false, can be left out")
    return Field(spec["name"], spec["type"], spec["comment"], least, most, spec.get("default"), left_out)
