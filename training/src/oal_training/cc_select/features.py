"""Features of one session, by the policy's program: the same integers that a host computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from oal_schema.features import Interpreter
from oal_schema.program_compile import MISSING
from oal_schema.settings import interpreted
from oal_schema.settings import policies as described

TABLE = "sender_session"


def numbers() -> list:
    """The table's columns that are numbers, in the contract's order: no names, flows and ticks."""
    table = next(t for t in interpreted().tables if t.name == TABLE)
    return [c for c in table.columns if c.type not in ("NAME", "FLOW") and c.kind != "TICK"]


def of_rows(policy: str) -> Callable[[dict], list[int] | None]:
    """A function of a row (column → number, None where the host did not know it); None where a feature is missing: on
    such a session a host decides nothing.
    """
    words = next(p["words"] for p in described() if p["name"] == policy)
    interpreter = Interpreter([tuple(word) for word in words], interpreted())
    columns = numbers()

    def of(row: dict) -> list[int] | None:
        absent = 0
        for column in columns:
            if row[column.name] is None:
                absent |= 1 << column.optional
        values = interpreter.row(TABLE, {c.name: row[c.name] or 0 for c in columns} | {"absent": absent})
        return None if MISSING in values else values

    return of


def hidden(x: np.ndarray, seen: Sequence[bool]) -> np.ndarray:
    """What the tree sees: columns that it must not split at are 0 everywhere; they keep their places."""
    return np.where(np.asarray(seen, dtype=bool), x, 0)
