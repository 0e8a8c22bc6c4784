"""The table of a run: a line for each case on each backend, with figures; complaints below."""
from pathlib import Path

from .case import Result


def word(result: Result) -> str:
    return "conforms" if not result.complaints else "FAILS"


def rows(results: list[Result]) -> list[dict]:
    return [{"case": r.case.name, "backend": r.backend, "complaints": r.complaints, "figures": r.figures, "numbers": r.numbers} for r in results]


def table(results: list[Result]) -> str:
    order = sorted(results, key=lambda r: [r.case.name for r in results].index(r.case.name))
    lines = ["| case | backend | | figures |", "|---|---|---|---|"]
    lines += [f"| {r.case.name} | {r.backend} | {word(r)} | {'; '.join(r.figures)} |" for r in order]
    for r in order:
        lines += [f"\n{r.case.name} on {r.backend} ({r.case.about}):", *(f"- {text}" for text in r.complaints)] if r.complaints else []
    return "\n".join(lines) + "\n"


def summary(results: list[Result], out: Path) -> str:
    failed = sum(bool(r.complaints) for r in results)
    return f"conformance: {len(results) - failed} of {len(results)} conform; captures in {out}"
