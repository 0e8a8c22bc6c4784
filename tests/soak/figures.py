"""What a drill found: figures with bounds, as JSON and as a table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build/soak"
MEETS = {"<=": lambda value, bound: value <= bound, ">=": lambda value, bound: value >= bound,
         "==": lambda value, bound: value == bound}


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    unit: str
    note: str = ""
    #: (relation, number), or None for a figure that is only told
    bound: tuple[str, float] | None = None

    @property
    def met(self) -> bool:
        return self.bound is None or MEETS[self.bound[0]](self.value, self.bound[1])

    def row(self) -> str:
        bound = "" if self.bound is None else f"{self.bound[0]} {self.bound[1]:,.6g}"
        return f"{self.name:52} {self.value:>14,.6g} {self.unit:14} {bound}{'' if self.met else '   NOT MET'}"


def write(drill: str, figures: Iterable[Figure], folder: Path = FOLDER) -> Path:
    """build/soak/DRILL.json."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{drill}.json"
    path.write_text(json.dumps([{
        "name": f.name, "value": f.value, "unit": f.unit, "command": f"make soak ONLY={drill}", "note": f.note,
        "bound": None if f.bound is None else list(f.bound)
    } for f in figures], indent=1) + "\n")
    return path


def read(drill: str, folder: Path = FOLDER) -> list[Figure]:
    """What a drill wrote; nothing when it wrote nothing."""
    path = folder / f"{drill}.json"
    if not path.exists():
        return []
    return [Figure(f["name"], f["value"], f["unit"], f["note"], f["bound"] and tuple(f["bound"]))
            for f in json.loads(path.read_text())]
