"""oal_lc (policies/loss-cause) decides the same in each of its forms, on histories that nobody has seen before: as this
compiler has the law, in this machine's kernel after its verifier and JIT, and in the lab's kernel."""
import os
import pathlib
import re
import subprocess

import pytest
from host import guest, scenario

POLICY = pathlib.Path(__file__).resolve().parents[2] / "policies/loss-cause"
HISTORIES = 100_000
SAID = re.compile(r"(\d+) histories, (\d+) decisions, all the same: (.*)")
KERNEL = {"name": "histories", "stations": [{"name": "sta"}], "flows": []}


def counted(text: str) -> tuple[int, int, dict[str, int]]:
    """(histories, decisions, how often each was made)."""
    said = SAID.fullmatch(text.strip())
    assert said, text
    return int(said[1]), int(said[2]), {name.strip(" ,"): int(n) for name, n in re.findall(r"([a-z_ ]+) (\d+)",
                                                                                           said[3])}


@pytest.fixture(scope="module")
def check(tmp_path_factory) -> pathlib.Path:
    """The program, which can do both, and the object for this machine's kernel beside it."""
    folder = tmp_path_factory.mktemp("ca")
    warn = ["-O2", "-Wall", "-Wextra", "-Werror"]
    machine = subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["gcc", "-std=gnu11", *warn, "-DWITH_BPF", "-o", folder / "ca_check", POLICY / "ca_check.c",
                    "-lbpf"], check=True)
    subprocess.run(["clang", "-target", "bpfel", "-g", *warn, "-Wno-unused-parameter", "-Wno-sign-compare",
                    f"-I/usr/include/{machine}", "-c", "-o", folder / "ca_check.bpf.o", POLICY / "ca_check.bpf.c"],
                   check=True)
    return folder / "ca_check"


def balanced(made: dict[str, int]) -> bool:
    """Whether each decision was made often enough to be compared, timeouts after a kept window among them."""
    return len(made) == 9 and min(made.values()) > HISTORIES // 20


def test_in_this_machines_kernel(check):
    if os.geteuid():
        pytest.skip("programs of the kernel need root")
    done = subprocess.run([check, "bpf", check.with_suffix(".bpf.o"), str(HISTORIES)], capture_output=True, text=True)
    if "does not take" in done.stderr:
        pytest.skip(f"this kernel has no programs of the kind syscall, or no bpf_loop (Linux 5.17): {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    histories, decisions, made = counted(done.stdout)
    assert histories == HISTORIES and decisions > 10 * HISTORIES and balanced(made), made


def test_in_the_labs_kernel(check, tmp_path):
    plan = {**scenario.plan("histories", {k: KERNEL[k] for k in ("stations", "flows")}), "program": str(check),
            "histories": HISTORIES}
    out = guest.play(plan, tmp_path, extra=["MAIN=guest.histories"], timeout_s=600)
    histories, _, made = counted((out / "histories.histories.txt").read_text())
    assert histories == HISTORIES and balanced(made), made


def test_a_difference_is_found(check, tmp_path):
    """A form that says something else, in one decision of one history."""
    other = tmp_path / "form"
    other.write_bytes(bytes(4096))  # a file keeps what is written and says nothing that was decided
    done = subprocess.run([check, "kernel", other, "3"], capture_output=True, text=True)
    assert done.returncode == 1 and re.match(r"history 0, event \d+: \d+ here, \d+ there", done.stdout), done.stdout
