"""A bench's result: printed, and written as the list of figures that `make bench` collects."""
import json
from pathlib import Path


def write(path: str, figures: list[dict]) -> None:
    """Each figure: name, value, unit, command, note."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(figures, indent=1) + "\n")
    for f in figures:
        print(f"{f['name']}: {f['value']:,} {f['unit']}  ({f['note']})")
