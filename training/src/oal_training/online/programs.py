"""Feature programs that this platform knows: `schema/generated/features/*.oalf`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oal_schema import program_file
from oal_schema.settings import FILE as SCHEMA_JSON

from oal_training import policies
from oal_training.errors import TrainingError


@dataclass(frozen=True)
class Program:
    """words: twelve a feature; feature_hash: first 8 bytes of its hash, unsigned."""

    name: str
    words: list[tuple[int, ...]]
    decision_interval_us: int
    feature_hash: int


def of_rwnd_fair() -> dict[int, Program]:
    """The program that online trees are fitted on, by its hash: that of policy rwnd-fair."""
    name = policies.manifest(policies.RWND_FAIR).program
    return {feature_hash: program for feature_hash, program in known().items() if program.name == name}


def known(folder: Path = SCHEMA_JSON.parent / "features") -> dict[int, Program]:
    """Programs by feature hash, and those that they begin with (earlier releases computed them); of those that compute
    the same, rwnd-fair's. TrainingError when there is none.
    """
    own = policies.manifest(policies.RWND_FAIR).program
    programs = {}
    for path in sorted(folder.glob("*.oalf"), key=lambda p: (p.stem != own, p)):
        words, interval = program_file.from_bytes(path.read_bytes())
        for n, digest in program_file.beginnings(words, interval):
            feature_hash = int.from_bytes(digest[:8], "big")
            programs.setdefault(feature_hash, Program(path.stem, words[:n], interval, feature_hash))
    if not programs:
        raise TrainingError(f"there is no feature program in {folder}; run `make gen`")
    return programs
