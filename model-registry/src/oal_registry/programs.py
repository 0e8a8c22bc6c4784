"""The feature programs that this release of the platform knows, by hash: those that the AP and Flink compute, and
those that they begin with, which earlier releases computed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from oal_schema import program_file

from oal_registry.errors import NotPackagable

FOLDER = Path(__file__).resolve().parents[3] / "schema" / "generated" / "features"


@dataclass(frozen=True)
class Program:
    """A feature program. `words` are twelve integers a feature; `hash` is the 32 bytes of its SHA-256."""

    name: str
    words: tuple[tuple[int, ...], ...]
    decision_interval_us: int
    hash: bytes
    features: tuple[str, ...]

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each feature, as the contract writes it (B, us, pkt, …)."""
        described = json.loads((FOLDER / f"{self.name}.json").read_text())
        return tuple(f["unit"] for f in described["features"])[: len(self.features)]

    @property
    def feature_hash(self) -> int:
        """First 8 bytes of the hash, big-endian: what trees and items carry."""
        return int.from_bytes(self.hash[:8], "big")

    def beginning(self, n: int) -> Program:
        """Its first `n` features as a program."""
        words = self.words[:n]
        digest = program_file.program_hash(list(words), self.decision_interval_us)
        return Program(self.name, words, self.decision_interval_us, digest, self.features[:n])


@lru_cache(maxsize=4)
def by_name(folder: Path = FOLDER) -> dict[str, Program]:
    """Programs by name; two policies may have programs that compute the same."""
    found = {}
    for path in sorted(folder.glob("*.oalf")):
        words, interval = program_file.from_bytes(path.read_bytes())
        described = json.loads(path.with_suffix(".json").read_text())
        digest = hashlib.sha256(path.read_bytes()).digest()
        features = tuple(f["name"] for f in described["features"])
        found[path.stem] = Program(path.stem, tuple(words), interval, digest, features)
    return found


@lru_cache(maxsize=1)
def known() -> dict[bytes, Program]:
    """Programs by hash, whole ones first; of those that compute the same, the first by name."""
    whole = [program for _, program in sorted(by_name().items())]
    found: dict[bytes, Program] = {}
    for program in whole:
        found.setdefault(program.hash, program)
    for program in whole:
        for n in range(1, len(program.words)):
            begun = program.beginning(n)
            found.setdefault(begun.hash, begun)
    return found


def of_bytes(data: bytes, what: str) -> Program:
    """The known program with these bytes, that of `what`; NotPackagable when APs and Flink compute no such features."""
    digest = hashlib.sha256(data).digest()
    if digest not in known():
        there = ", ".join(f"{p.name} {p.hash.hex()[:12]}" for p in by_name().values())
        raise NotPackagable(
            f"feature_mismatch: {what} was trained with the feature program {digest.hex()[:12]}, which this platform"
            f" does not compute (it computes {there}); train again on present items"
        )
    return known()[digest]


def of_hash(feature_hash: int) -> Program | None:
    """The known program by the first 8 bytes of its hash."""
    return next((p for p in known().values() if p.feature_hash == feature_hash), None)


def begins(feature_hash: int, earlier_hash: int) -> bool:
    """Is the first program the second, or does it begin with it? Then its vectors are the other's, and more."""
    if feature_hash == earlier_hash:
        return True
    program, earlier = of_hash(feature_hash), of_hash(earlier_hash)
    if program is None or earlier is None or program.decision_interval_us != earlier.decision_interval_us:
        return False
    return program.words[: len(earlier.words)] == earlier.words


def of_name(name: str) -> Program | None:
    """The known program of this name, None when there is none."""
    return by_name().get(name)
