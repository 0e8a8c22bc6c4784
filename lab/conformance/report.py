"""The table of a run: a line for each case on each backend, with figures; complaints below."""
from pathlib import Path
from statistics import median

from .case import Result


def word(result: Result) -> str:
    return "conforms" if not result.complaints else "FAILS"


def rows(results: list[Result]) -> list[dict]:
    return [{
        "case": r.case.name, "backend": r.backend, "complaints": r.complaints, "figures": r.figures,
        "numbers": r.numbers
    } for r in results]


COMMAND = "make -C lab bench"
NOTES = {
    "median": (
        "from the decision's tick to the first lowered ACK at the sender's side of the AP, the wait for the client's"
        " next ACK included; virtual time"
    ),
    "longest": "the same, longest",
    "last_plain": "from a decision to the last ACK that still passed unlowered; virtual time",
    "dead_man": "from SIGKILL of the agent to the last lowered ACK, time to live 1,000 ms; virtual time",
}


def figure(name: str, value: float, about: str) -> dict:
    return {"name": f"control.{name}", "value": round(value, 3), "unit": "ms", "command": COMMAND, "note": NOTES[about]}


def speed(results: list[Result]) -> list[dict]:
    """As build/bench has them."""
    found = []
    for r in results:
        if took := r.numbers.get("prediction_to_ack_ms"):
            values = {"median": median(took), "longest": took[-1], "last_plain": r.numbers["plain_after_prediction_ms"]}
            found += [figure(f"prediction_to_ack_{r.backend}_{word}", value, word) for word, value in values.items()]
        if "dead_man_ms" in r.numbers:
            found.append(figure(f"dead_man_{r.backend}", r.numbers["dead_man_ms"], "dead_man"))
    return found


def table(results: list[Result]) -> str:
    names = [r.case.name for r in results]
    order = sorted(results, key=lambda r: names.index(r.case.name))
    lines = ["| case | backend | | figures |", "|---|---|---|---|"]
    lines += [f"| {r.case.name} | {r.backend} | {word(r)} | {'; '.join(r.figures)} |" for r in order]
    for r in order:
        lines += [f"\n{r.case.name} on {r.backend} ({r.case.about}):", *(f"- {text}" for text in r.complaints)
                  ] if r.complaints else []
    return "\n".join(lines) + "\n"


def summary(results: list[Result], out: Path) -> str:
    failed = sum(bool(r.complaints) for r in results)
    return f"conformance: {len(results) - failed} of {len(results)} conform; captures in {out}"
