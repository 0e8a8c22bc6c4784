"""Which scope the alias of each slot governed last, on disk: it says whose release a deleted alias takes back.

A policy has a file of its own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from oal_schema.release import Release

from oal_registry.release_topic import SLOTS, Key


class SlotMemory:
    """A small file, written whole; an unreadable one counts as empty."""

    def __init__(self, path: Path):
        self._path = path
        try:
            value = json.loads(path.read_text())
            self._scopes = {
                slot: value[slot] for slot in SLOTS if slot in value and isinstance(value[slot], str | None)
            }
        except (OSError, ValueError, TypeError):
            self._scopes = {}

    def scope(self, slot: str, in_force: dict[Key, Release], rolled_back: str) -> str | None:
        """None when no release of the slot has an alias. Without memory, it is the latest that an alias asked for."""
        if slot not in self._scopes:
            asked = [
                (r.created_us, scope)
                for (s, scope), r in in_force.items()
                if s == slot and not r.variant_of and not r.reason.startswith(rolled_back)
            ]
            return max(asked)[1] if asked else None
        return self._scopes[slot]

    def governs(self, slot: str, scope: str | None) -> None:
        """The slot's alias governs this scope now; None: no release has it."""
        if slot in self._scopes and self._scopes[slot] == scope:
            return
        self._scopes[slot] = scope
        temporary = self._path.with_suffix(".new")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(self._scopes, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
