"""`tests/run` itself, on a tree of suites that do what is wanted of them here."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from flow import until

HERE = Path(__file__).resolve().parent
RUN = HERE / "run"
_run = {"__file__": str(RUN), "__name__": "run"}
exec(compile(RUN.read_text(), RUN, "exec"), _run)
#: The suites that it runs by itself, and where each is.
SUITES: dict[str, tuple[str, str]] = _run["SUITES"]
OUTAGES: dict[str, tuple[str, str]] = _run["OUTAGES"]
EVERY = [*SUITES.values(), *OUTAGES.values()]
FOLDERS = sorted({folder for folder, _ in EVERY})
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
    shutil.copytree(HERE / "report", tmp_path / "tests" / "report", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def makefile(tree, folder: str, setup: str = "@echo set up", test: str = "@echo tested") -> None:
    targets = sorted({target for where, target in EVERY if where == folder} | {"check"})
    (tree / folder / "Makefile").write_text(f"setup:\n\t{setup}\n{' '.join(targets)}:\n\t{test}\n")


def start(tree, *words: str) -> subprocess.Popen:
    """As from a shell's background job, which begins with SIGINT ignored."""
    return subprocess.Popen([tree / "tests" / "run", "--jobs", "2", *words], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))


def result(out: str, suite: str) -> str:
    """What the table at the end says of it."""
    table = out[out.rindex("== suites"):].splitlines()
    return next(line.split(" s  ")[1].split("  (")[0] for line in table if line.startswith(f"{suite} "))


def started(folder: Path) -> int:
    """Number of the process that a suite is, as soon as it runs."""
    pid = folder / "pid"
    return int(until(f"{folder.name} runs", lambda: pid.exists() and pid.read_text(), LIMIT_S))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_outages_are_suites_that_make_test_leaves_out(tree):
    assert not set(OUTAGES) & set(SUITES) and not set(OUTAGES.values()) & set(SUITES.values())
    run = start(tree, "--outages")
    out = run.communicate(timeout=LIMIT_S)[0]
    assert run.returncode == 0
    assert {suite: result(out, suite) for suite in OUTAGES} == dict.fromkeys(OUTAGES, "passed")
    assert f"suites: {len(OUTAGES)} passed, 0 failed" in out


@pytest.mark.parametrize("folder,target", EVERY)
def test_each_suite_is_a_target_of_its_folder(folder, target):
    done = subprocess.run(["make", "-n", "-C", HERE.parent / folder, target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_file_of_tests_here_is_left_out_or_run_twice():
    words = dict(line.split(" = ", 1) for line in (HERE / "Makefile").read_text().splitlines()
                 if line.startswith(("DATA = ", "OUTAGES = ", "KILLS = ", "LOOP = ", "FRAME = ")))
    named = " ".join(words.values()).split()
    assert len(words) == 5 and len(named) == len(set(named))
    assert set(named) <= {path.name for path in HERE.glob("test_*.py")}


def test_all_suites_pass(tree):
    run = start(tree)
    out = run.communicate(timeout=60)[0]
    assert run.returncode == 0 and f"suites: {len(SUITES)} passed, 0 failed" in out, out


def test_failures_of_set_up_and_of_tests_count_and_the_others_go_on(tree):
    makefile(tree, "schema", setup="@exit 3")
    makefile(tree, "training", test="@exit 4")
    run = start(tree)
    out = run.communicate(timeout=60)[0]
    assert run.returncode == 1 and f"suites: {len(SUITES) - 2} passed, 2 failed" in out, out
    assert result(out, "schema") == "FAILED (make -C schema setup)" and result(
        out, "training") == "FAILED (make -C training test)"
    assert result(out, "ap-exporter") == "passed" and result(out, "end-to-end-loop") == "passed"
    assert out.count("tested") == len(SUITES) - 2, "a suite ran without its set-up"


def test_what_a_suite_takes_of_the_processors_is_said(tree):
    makefile(tree, "schema", test="""@python3 -c 'while __import__("time").process_time() < 2: pass'""")
    out = start(tree, "schema", "training").communicate(timeout=LIMIT_S)[0]
    table = out[out.rindex("== suites"):]
    took = {line.split()[0]: int(line.split("(")[1].split()[0]) for line in table.splitlines() if "processors)" in line}
    assert 2 <= took["schema"] < 30 and took["training"] < took["schema"], table


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
    # two at a time; those named run one after the other
    running = ("model-registry", "ap-exporter") if not folders else ("schema",)
    for suite in ("test-loop", "test-data"):  # they come first, and end
        assert ("tests", suite) in SUITES.values()
    for folder in running:
        makefile(tree, folder, test=ENDLESS)
    run = start(tree, *folders)
    pids = [started(tree / folder) for folder in running]
    os.kill(run.pid, number)
    out = run.communicate(timeout=60)[0]
    assert run.returncode == 130 and "== suites" not in out, out
    assert not [pid for pid in pids if alive(pid)]


def test_a_second_signal_kills_a_suite_that_does_not_end(tree):
    # `make` waits for what it started before it ends.
    makefile(tree, "schema", test="@trap '' INT; echo $$$$ >pid; while :; do sleep 1; done")
    run = start(tree)
    pid = started(tree / "schema")
    os.kill(run.pid, signal.SIGINT)
    assert any("ending the suites" in line for line in run.stdout), "it did not say that it ends"
    os.kill(run.pid, signal.SIGINT)
    assert run.wait(60) == 130
    until("it is dead", lambda: not alive(pid), LIMIT_S)


def test_check_runs_what_needs_no_server(tree):
    for folder, _ in _run["CHECKS"].values():
        (tree / folder).mkdir(parents=True, exist_ok=True)
        makefile(tree, folder, setup="@exit 3", test="@echo checked")
    run = start(tree, "--check")
    out = run.communicate(timeout=60)[0]
    assert run.returncode == 0 and out.count("checked") == len(_run["CHECKS"]), out


REPORT = "\t".join(("schema", "test_x.py::test_slow", "12.5", "ran", "")) + "\n" + "\t".join(
    ("schema", "test_y.py", "0", "skipped", "no such thing")) + "\n"


@pytest.mark.parametrize(("ci", "expected", "code"), [("", "", 0), ("true", "", 1),
                                                      ("true", "schema test_y.py: no such", 0)])
def test_skips_are_said_and_in_ci_must_be_expected(tree, ci, expected, code):
    makefile(tree, "schema", test="@cat ../report.tsv >$$OAL_REPORT/1.tsv")
    (tree / "report.tsv").write_text(REPORT)
    (tree / "tests/report/expected_skips.txt").write_text(f"# why\n{expected}\n")
    done = subprocess.run([tree / "tests" / "run", "schema"], capture_output=True, text=True,
                          env=os.environ | {"CI": ci}, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert "schema test_y.py: no such thing" in done.stdout and "12.5 s  schema  test_x.py::test_slow" in done.stdout


def test_the_plugin_writes_what_ran_and_what_was_skipped(tmp_path):
    (tmp_path / "test_it.py"
     ).write_text("import pytest\ndef test_a(): pass\n@pytest.mark.skip(reason='not here')\ndef test_b(): pass\n")
    env = os.environ | {
        "OAL_REPORT": str(tmp_path), "OAL_SUITE": "x", "PYTEST_ADDOPTS": "-p oal_report", "PYTHONPATH": str(
            HERE / "report")
    }
    subprocess.run([sys.executable, "-m", "pytest", "-q", str(tmp_path)], env=env, check=True, capture_output=True,
                   timeout=60)
    lines = [line.split("\t") for path in tmp_path.glob("*.tsv") for line in path.read_text().splitlines()]
    assert ["test_it.py::test_a", "ran"] in [[e[1].rsplit("/")[-1], e[3]] for e in lines], lines
    assert any(e[3] == "skipped" and "not here" in e[4] for e in lines), lines


def test_the_exporters_programs_say_what_they_skip_in_the_same_place(tmp_path):
    program = tmp_path / "needs_more.py"
    program.write_text("#!/bin/sh\necho 'skip no such kernel'\necho '# 2 passed, 0 failed, 1 skipped'\n")
    program.chmod(0o755)
    done = subprocess.run([str(HERE.parent / "ap-exporter/tests/run"), str(program)], capture_output=True, text=True,
                          env=os.environ | {"OAL_SUITE": "ap-exporter", "OAL_REPORT": str(tmp_path)}, check=True)
    assert "2 passed, 0 failed, 1 skipped" in done.stdout
    lines = [line.split("\t") for path in tmp_path.glob("*.tsv") for line in path.read_text().splitlines()]
    assert [(e[0], e[3], e[4]) for e in lines] == [("ap-exporter", "skipped", "no such kernel"),
                                                   ("ap-exporter", "ran", "")], lines
