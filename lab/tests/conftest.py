"""Run small plans in the guest, each once per test session."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from host import guest, scenario  # noqa: E402


@pytest.fixture(scope="session")
def play(tmp_path_factory):
    """play(name, scenario dict, plan keys) -> the run's truth, and the folder of its results."""
    def run(name: str, given: dict, **more) -> dict:
        plan = {**scenario.plan(name, given), **more}
        out = guest.play(plan, tmp_path_factory.mktemp(name), timeout_s=300)
        return json.loads((out / f"{name}.truth.json").read_text()) | {"folder": out}
    return run
