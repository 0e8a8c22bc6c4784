"""Commands of the pages, as they stand: from the tree's root, with paths that are meant from there."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def ask(*words: str) -> str:
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder():
    """One within the tree, where a relative path can say it."""
    made = ROOT / "build/test-commands"
    yield made.relative_to(ROOT)
    shutil.rmtree(made, ignore_errors=True)


def test_the_report_of_committed_results(folder):
    said = ask("lab/evaluate/run", "--from", "lab/evaluate/results/online", "--report", str(folder))
    assert "| **mean** | cubic-fifo+oal-online against cubic-fifo+oal |" in said and str(folder) in said
    assert "What each part adds" in (ROOT / folder / "table.md").read_text()
    assert (ROOT / folder / "report.html").exists() and (ROOT / folder / "tradeoff.png").exists()


def test_neighbours():
    assert ask("lab/evaluate/peers", "--from", "lab/evaluate/results/peers.json").startswith("| model | neighbours |")
