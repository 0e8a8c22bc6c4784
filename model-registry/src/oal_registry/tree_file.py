"""Trees from files of any of three kinds: signed bundle, JSON, text records."""

from __future__ import annotations

import sys
from pathlib import Path

from oal_schema import bundle, program_file
from oal_schema.nodes import BundleError
from oal_schema.tree import Tree

from oal_registry import json_tree, programs, text_tree
from oal_registry.errors import RegistryError
from oal_registry.programs import Program


def load(path: str, program_name: str) -> tuple[Tree, Program]:
    """The tree and its feature program.

    `program_name` is that of text records, which do not say. A bundle's signature is not checked.
    """
    data = _read(path)
    head = data.lstrip()[:1]
    if head == b"{":
        return json_tree.loads(_text(data, path))
    if head.isdigit():
        return _of_text(_text(data, path), program_name, path)
    try:
        content = bundle.decode(bundle.split_signed(data)[0])
        program = programs.of_bytes(program_file.to_bytes(content.program, content.decision_interval_us), path)
    except BundleError as error:
        raise RegistryError(f"{path} is neither text records nor JSON nor a bundle ({error})") from None
    return content.tree, program


def load_text(path: str, program_name: str) -> tuple[Tree, Program]:
    """The tree of a file of text records."""
    return _of_text(_text(_read(path), path), program_name, path)


def _of_text(text: str, program_name: str, path: str) -> tuple[Tree, Program]:
    program = programs.of_name(program_name)
    if program is None:
        raise RegistryError(
            f"no feature program {program_name}; there are {', '.join(p.name for p in programs.known().values())}"
        )
    try:
        tree = text_tree.loads(text, program.features, program.feature_hash)
        tree.check(len(program.features))
    except BundleError as error:
        raise RegistryError(f"{path}: {error}") from None
    except text_tree.TextTreeError as error:
        raise RegistryError(f"{path}: {error}") from None
    return tree, program


def _read(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read(text_tree.MAX_TEXT + 1) if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise RegistryError(f"cannot read {path}: {error.strerror}") from None


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise RegistryError(f"{path}: byte {error.start} is not ASCII text") from None
