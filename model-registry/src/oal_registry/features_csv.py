"""CSV of integer features in, predictions out."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import TextIO

import numpy as np
from oal_schema.nodes import MISSING
from oal_schema.settings import settings
from oal_schema.tree import Tree

from oal_registry.errors import RegistryError

INTEGER = re.compile(r"[+-]?\d{1,19}(\.0*)?")
ABSENT = ("", "nan", "null", "na")
ROWS_AT_ONCE = 20_000


def read(file: TextIO, features: tuple[str, ...], allow_absent: bool = False) -> Iterator[np.ndarray]:
    """Blocks of int64[rows, features].

    The first line names the columns, in any order; others than features are passed over.

    An empty cell, `nan`, `na` or `null` is a missing value. RegistryError with line and column for anything that is not
    an integer of 64 bits, and for features without column unless `allow_absent`, which takes them as missing.
    """
    lines = csv.reader(file, strict=True)
    try:
        header = [name.strip() for name in next(lines, [])]
        column = {name: i for i, name in enumerate(header)}
        if len(column) != len(header):
            raise RegistryError("line 1: a column is there twice")
        absent = [name for name in features if name not in column]
        if len(absent) == len(features):
            raise RegistryError(
                f"line 1: names none of the features; it must be a header like {','.join(features[:3])},…"
            )
        if absent and not allow_absent:
            raise RegistryError(
                f"line 1: no column for {len(absent)} features:"
                f" {', '.join(absent[:5])}{', …' if len(absent) > 5 else ''}; --allow-absent takes them as missing"
                " values"
            )
        wanted = [(i, column[name]) for i, name in enumerate(features) if name in column]
        block: list[list[int]] = []
        for cells in lines:
            if not cells:
                continue
            if len(cells) != len(header):
                raise RegistryError(f"line {lines.line_num}: {len(cells)} cells under {len(header)} columns")
            row = [MISSING] * len(features)
            for i, at in wanted:
                row[i] = _integer(cells[at], lines.line_num, header[at])
            block.append(row)
            if len(block) == ROWS_AT_ONCE:
                yield np.array(block, np.int64)
                block = []
    except (csv.Error, UnicodeDecodeError) as error:
        raise RegistryError(f"line {lines.line_num}: not CSV: {error}") from None
    if block:
        yield np.array(block, np.int64)


def _integer(text: str, line: int, column: str) -> int:
    text = text.strip()
    if text.lower() in ABSENT:
        return MISSING
    value = int(text.partition(".")[0]) if INTEGER.fullmatch(text) else None
    if value is None or not -(1 << 63) <= value < (1 << 63):
        raise RegistryError(
            f"line {line}, column {column}: `{text[:40]}` is not an integer of 64 bits; features are integers"
        )
    return value


def write_predictions(tree: Tree, blocks: Iterator[np.ndarray], out: TextIO) -> int:
    """Lines `leaf,class,class_name,congested_permille` under a header, one a row; the number of rows."""
    names = settings()["class_names"]
    out.write("leaf,class,class_name,congested_permille\n")
    rows = 0
    for block in blocks:
        leaf = tree.apply(block)
        congested = tree.leaf_permille.astype(np.int64)[leaf, 1:].sum(axis=1)
        for at, permille in zip(leaf.tolist(), congested.tolist(), strict=True):
            out.write(f"{at},{tree.leaf_class[at]},{names[tree.leaf_class[at]]},{permille}\n")
        rows += len(block)
    return rows
