"""`tests/run` itself, on a tree of suites that do what is wanted of them here."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from flow import until

RUN = Path(__file__).with_name("run")
#: The suites that it runs by itself, and where each is.
SUITES = (*re.search(r"^lanes=\((.*)\)$", RUN.read_text(), re.M)[1].replace('"', "").split(), "end-to-end")
OF_PLATFORM = {makefile.parent.name for makefile in RUN.parents[1].glob("platform/*/Makefile")}
FOLDERS = tuple("tests" if suite == "end-to-end" else f"platform/{suite}" if suite in OF_PLATFORM else suite for suite in SUITES)
#: Until a suite of the tree runs: it does nothing before.
LIMIT_S = 60
#: Says where it is, and ends by itself only much later than any test waits.
ENDLESS = "@echo $$$$ >pid; exec sleep 3600"


@pytest.fixture
def tree(tmp_path):
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        makefile(tmp_path, folder)
    shutil.copy(RUN, tmp_path / "tests" / "run")
    return tmp_path


def makefile(tree, folder: str, setup: str = "@echo set up", test: str = "@echo tested") -> None:
    (tree / folder / "Makefile").write_text(f"setup:\n\t{setup}\ntest:\n\t{test}\n")


def start(tree, *folders: str) -> subprocess.Popen:
    """As from a terminal: a shell's background jobs begin with SIGINT ignored, and what begins so can never trap it."""
    return subprocess.Popen([tree / "tests" / "run", *folders], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def result(out: str, suite: str) -> str:
    """What the table at the end says of it."""
    table = out[out.rindex("== suites"):].splitlines()
    return next(line.split(" s  ")[1] for line in table if line.startswith(f"{suite} "))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_all_suites_pass(tree):
    run = start(tree)
    out = run.communicate(timeout=60)[0]
    assert run.returncode == 0 and f"suites: {len(FOLDERS)} passed, 0 failed" in out, out


def test_failures_of_set_up_and_of_tests_count_and_the_others_go_on(tree):
    makefile(tree, "schema", setup="@exit 3")
    makefile(tree, "training", test="@exit 4")
    run = start(tree)
    out = run.communicate(timeout=60)[0]
    assert run.returncode == 1 and f"suites: {len(FOLDERS) - 2} passed, 2 failed" in out, out
    assert result(out, "schema") == "FAILED (make -C schema setup)" and result(out, "training") == "FAILED (make -C training test)"
    assert result(out, "ap-exporter") == "passed" and result(out, "end-to-end") == "passed"
    assert out.count("tested") == len(FOLDERS) - 2, "a suite ran without its set-up"


def test_a_folder_that_is_none_is_said_before_anything_runs(tree):
    run = start(tree, "schema", "scheme")
    assert (run.communicate(timeout=60)[0], run.returncode) == ("no such suite: scheme\n", 2)


@pytest.mark.parametrize("name", ["local", "platform/local", "platform/local/"])
def test_a_folder_of_platform_goes_by_its_own_name_and_by_its_path(tree, name):
    run = start(tree, name)
    out = run.communicate(timeout=60)[0]
    assert run.returncode == 0 and result(out, "local") == "passed" and "suites: 1 passed, 0 failed" in out, out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("folders", [(), ("schema", "training")], ids=["all", "named"])
def test_a_signal_ends_the_suites_that_run(tree, folders, number):
    running = ("schema", "training") if not folders else ("schema",)  # one of each lane; those named run one after the other
    for folder in running:
        makefile(tree, folder, test=ENDLESS)
    run = start(tree, *folders)
    pids = [int(until(f"{folder} runs", lambda: (tree / folder / "pid").exists() and (tree / folder / "pid").read_text(), LIMIT_S)) for folder in running]
    os.kill(run.pid, number)
    out = run.communicate(timeout=60)[0]
    assert run.returncode == 130 and "== suites" not in out, out
    assert not [pid for pid in pids if alive(pid)]


def test_a_second_signal_kills_a_suite_that_does_not_end(tree):
    # `make` waits for what it started before it ends.
    makefile(tree, "schema", test="@trap '' INT; echo $$$$ >pid; while :; do sleep 1; done")
    run = start(tree)
    pid = int(until("it runs", lambda: (tree / "schema" / "pid").exists() and (tree / "schema" / "pid").read_text(), LIMIT_S))
    os.kill(run.pid, signal.SIGINT)
    assert any("ending the suites" in line for line in run.stdout), "it did not say that it ends"
    os.kill(run.pid, signal.SIGINT)
    assert run.wait(60) == 130
    until("it is dead", lambda: not alive(pid), LIMIT_S)
