from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from oal_training.stored import parquet

CAPTURES = Path(__file__).resolve().parents[3] / "lab" / "captures"
LEARNING = CAPTURES / "learning.items.parquet"


def quiet(_line: str) -> None:
    pass


@pytest.fixture(scope="session")
def learning():
    """Items of the committed capture `learning`."""
    return parquet.read(LEARNING, log=quiet)


@pytest.fixture(scope="session")
def fitted(mlflow_uri, tmp_path_factory):
    """The policy's own experiment, fitted and registered as people do it: run_id, version, and what was printed."""
    from oal_training.batch import pictures
    from oal_training.cli import main

    result, out = tmp_path_factory.mktemp("fitted") / "result.json", io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("OAL_GIT_REVISION", "a-revision")
        patch.setattr(pictures, "draw", lambda *_: None)  # test_batch_lineage.py looks at them
        words = ["fit", "--policy", "rwnd-fair", "--source", str(LEARNING), "--tracking-uri", mlflow_uri]
        assert main([*words, "--result", str(result)]) == 0
    return SimpleNamespace(**json.loads(result.read_text()), printed=out.getvalue())
