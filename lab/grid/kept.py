"""Sessions as a Parquet file: committed, so that everything that was judged can be judged again."""
from __future__ import annotations

import pathlib

import pandas as pd

FILE = pathlib.Path(__file__).resolve().parents[1] / "evaluate/results/cc-select/sessions.parquet"
DIGITS = 3  # of what is no whole number


def write(rows: list[dict], file: pathlib.Path = FILE) -> int:
    """A row a session, in order of paths; how many there are."""
    file.parent.mkdir(parents=True, exist_ok=True)
    keys = ["path", "cc", "repetition"]
    sessions = pd.DataFrame(rows).sort_values(keys, ignore_index=True)
    means = [name for name in sessions if name.endswith("_mean")]
    sessions[means] = sessions[means].round(DIGITS)
    sessions.to_parquet(file, compression="zstd", compression_level=19, index=False)
    return len(sessions)


def read(file: pathlib.Path = FILE) -> pd.DataFrame:
    return pd.read_parquet(file)
