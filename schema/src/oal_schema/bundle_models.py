"""The models of a bundle by role: kinds, columns of `bundle.proto`, golden vectors (README, "Bundles")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .bundle_parts import tree_columns, tree_of, window_columns, window_of
from .nodes import BundleError
from .settings import settings
from .tree import Tree
from .window import WindowModel

MAX_ROLE = 16


@dataclass(frozen=True)
class Kind:
    """How `bundle.proto` writes models of one kind: the field of Model of the kind's own name, from and to it."""

    name: str
    table: type
    title: str  #: in messages
    unit: str  #: of an answer, in messages
    columns: Callable[[Tree | WindowModel], dict]
    of: Callable[[dict], Tree | WindowModel]


KINDS = {
    k.name: k
    for k in (
        Kind("tree", Tree, "tree", "leaf", tree_columns, tree_of),
        Kind("sum", WindowModel, "window model", "bytes", window_columns, window_of),
    )
}


@dataclass
class Model:
    """One model of a bundle.

    role    what the law takes it for: `class`, `window` or a name of its own
    table   the model itself
    golden  rows of its inputs, int64[r, width], from which golden vectors are made; None: made up. After decoding, the
            bundle's own
    """

    role: str
    table: Tree | WindowModel
    golden: np.ndarray | None = field(default=None, repr=False)

    @property
    def kind(self) -> Kind:
        return next(k for k in KINDS.values() if isinstance(self.table, k.table))


def models_of(
    tree: Tree,
    window: WindowModel | None = None,
    golden: np.ndarray | None = None,
    golden_window: np.ndarray | None = None,
) -> list[Model]:
    """Models of rwnd-fair: a congestion tree, and a window model where there is one; with rows for golden vectors."""
    return [Model("class", tree, golden)] + ([Model("window", window, golden_window)] if window is not None else [])


def kinds_of(models: list[dict]) -> dict[str, str]:
    """role → kind of messages Model. BundleError("unsupported_format") when a role or a kind is none of the contract's.
    """
    limit = settings()["max_bundle_models"]
    if len(models) > limit:
        raise _unsupported(f"{len(models)} models; at most {limit}")
    out: dict[str, str] = {}
    for m in models:
        if not 1 <= len(m["role"]) <= MAX_ROLE or m["role"] in out:
            raise _unsupported(f"role {m['role']!r}; each once, 1 to {MAX_ROLE} characters")
        if m["kind"] not in KINDS:
            raise _unsupported(f"role {m['role']}: kind {m['kind']!r}; known are {', '.join(KINDS)}")
        if [k for k in KINDS if m[k] is not None] != [m["kind"]]:
            raise _unsupported(f"role {m['role']}: kind {m['kind']} is given in a field of this name, and no other")
        out[m["role"]] = m["kind"]
    return out


def table_of(kind: str, v: dict, n_features: int) -> Tree | WindowModel:
    """A checked model of its columns. BundleError with the reason of its kind."""
    table = KINDS[kind].of(v)
    table.check(n_features)
    return table


def check_golden(model: Model, inputs: list[int], answers: list[int], n_features: int) -> np.ndarray:
    """Golden rows of a model, int64[r, width]. BundleError("golden_mismatch") when an answer is another, or none is
    there.
    """
    title, unit, width = model.kind.title, model.kind.unit, model.table.width(n_features)
    if not answers or len(inputs) != len(answers) * width:
        raise BundleError(
            "golden_mismatch", f"{title}: {len(answers)} answers and {len(inputs)} values for {width} inputs"
        )
    x = np.array(inputs, np.int64).reshape(-1, width)
    got = model.table.answer(x)
    if (wrong := np.flatnonzero(got != np.array(answers))).size:
        at = wrong[0]
        raise BundleError("golden_mismatch", f"{title}, vector {at}: {unit} {got[at]}, not {answers[at]}")
    return x


def _unsupported(detail: str) -> BundleError:
    return BundleError("unsupported_format", detail)
