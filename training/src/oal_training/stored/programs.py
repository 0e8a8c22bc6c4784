"""Feature programs of the contract, as fits and files name them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from oal_schema import program_file
from oal_schema.settings import FILE as SCHEMA_JSON

from oal_training.errors import TrainingError

PROGRAMS = SCHEMA_JSON.parent / "features"


@dataclass(frozen=True)
class KnownProgram:
    """A feature program of the contract.

    oalf: its bytes; described: {"name", "hash", "decision_interval_us", "features": [{"name", "op", "unit"}, …]}.
    """

    oalf: bytes
    described: dict

    @property
    def names(self) -> tuple[str, ...]:
        """Of its features, in order."""
        return tuple(f["name"] for f in self.described["features"])

    @property
    def json(self) -> bytes:
        """The description as a file."""
        return (json.dumps(self.described, indent=1) + "\n").encode()


@cache
def known_programs() -> dict[int, KnownProgram]:
    """Compiled feature programs of the contract by the first 8 bytes of their hash, and those that they begin with:
    features are only added, at the end, and items of earlier releases have the first of them.
    """
    whole = [json.loads(path.read_text()) for path in sorted(PROGRAMS.glob("*.json"))]
    found: dict[int, KnownProgram] = {}
    for described in whole:
        words, interval = program_file.from_bytes((PROGRAMS / f"{described['name']}.oalf").read_bytes())
        for n, digest in program_file.beginnings(words, interval):
            begun = described | {"hash": digest.hex(), "features": described["features"][:n]}
            oalf = program_file.to_bytes(words[:n], interval)
            found.setdefault(int.from_bytes(digest[:8], "big"), KnownProgram(oalf, begun))
    return found


def feature_names(feature_hash: int, n: int) -> tuple[str, ...]:
    """Names by the contract, or f0, f1, … of a program that the contract does not have."""
    known = known_programs().get(feature_hash)
    names = known.names if known else tuple(f"f{i}" for i in range(n))
    if len(names) != n:
        raise TrainingError(
            f"items of feature program {feature_hash:016x} have {n} features, the program {known.described['name']} has"
            f" {len(names)}: the items are damaged"
        )
    return names
