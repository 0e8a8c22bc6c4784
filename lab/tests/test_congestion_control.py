"""oal_lc (policies/loss-cause) and oal_ecn (policies/learned-ecn) decide the same in each of their forms, on histories
that nobody has seen before: as this compiler has the law, in this machine's kernel after its verifier and JIT, and in
the lab's kernel."""
import os
import pathlib
import re
import subprocess

import pytest
from host import guest, scenario

POLICIES = pathlib.Path(__file__).resolve().parents[2] / "policies"
#: Policy → the congestion control's check in a kernel that has it, and how many decisions there are to make.
CHECKS = {"loss-cause": ("/proc/oal_lc_check", 9), "learned-ecn": ("/proc/oal_ecn_check", 8)}
HISTORIES = 100_000
SAID = re.compile(r"(\d+) histories, (\d+) decisions, all the same: (.*)")
KERNEL = {"name": "histories", "stations": [{"name": "sta"}], "flows": []}


def counted(text: str) -> tuple[int, int, dict[str, int]]:
    """(histories, decisions, how often each was made)."""
    said = SAID.fullmatch(text.strip())
    assert said, text
    return int(said[1]), int(said[2]), {name.strip(" ,"): int(n) for name, n in re.findall(r"([a-z_ ]+) (\d+)",
                                                                                           said[3])}


@pytest.fixture(scope="module", params=CHECKS)
def policy(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def check(policy, tmp_path_factory) -> pathlib.Path:
    """The program, which can do both, and the objects for this machine's kernel beside it."""
    folder = tmp_path_factory.mktemp("ca")
    warn = ["-O2", "-Wall", "-Wextra", "-Werror"]
    machine = subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["gcc", "-std=gnu11", *warn, "-DWITH_BPF", "-o", folder / "ca_check",
                    POLICIES / policy / "ca_check.c", "-lbpf"], check=True)
    for name in ("ca_check", "ca"):
        subprocess.run(["clang", "-target", "bpfel", "-g", *warn, "-Wno-unused-parameter", "-Wno-sign-compare",
                        f"-I/usr/include/{machine}", "-c", "-o", folder / f"{name}.bpf.o",
                        POLICIES / policy / f"{name}.bpf.c"], check=True)
    return folder / "ca_check"


def balanced(made: dict[str, int], policy: str) -> bool:
    """Whether each decision was made often enough to be compared, timeouts after a kept window among them."""
    return len(made) == CHECKS[policy][1] and min(made.values()) > HISTORIES // 20


def test_in_this_machines_kernel(policy, check):
    if os.geteuid():
        pytest.skip("programs of the kernel need root")
    done = subprocess.run([check, "bpf", check.with_suffix(".bpf.o"), str(HISTORIES)], capture_output=True, text=True)
    if "does not take" in done.stderr:
        pytest.skip(f"this kernel has no programs of the kind syscall, or no bpf_loop (Linux 5.17): {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    histories, decisions, made = counted(done.stdout)
    assert histories == HISTORIES and decisions > 10 * HISTORIES and balanced(made, policy), made


def test_in_the_labs_kernel(policy, check, tmp_path):
    plan = {**scenario.plan("histories", {k: KERNEL[k] for k in ("stations", "flows")}), "program": str(check),
            "histories": HISTORIES, "check": CHECKS[policy][0]}
    out = guest.play(plan, tmp_path, extra=["MAIN=guest.histories"], timeout_s=600)
    histories, _, made = counted((out / "histories.histories.txt").read_text())
    assert histories == HISTORIES and balanced(made, policy), made


def test_a_difference_is_found(check, tmp_path):
    """A form that says something else, in one decision of one history."""
    other = tmp_path / "form"
    other.write_bytes(bytes(4096))  # a file keeps what is written and says nothing that was decided
    done = subprocess.run([check, "kernel", other, "3"], capture_output=True, text=True)
    assert done.returncode == 1, done.stdout
    assert re.match(r"history 0, event \d+: [\d ]+ here, [\d ]+ there", done.stdout), done.stdout


@pytest.mark.parametrize("policy", ["learned-ecn"], indirect=True)
def test_this_machines_kernel_takes_oal_ecn(policy, check):
    """And offers it to connections, while whoever registered it lives. (oal_lc: ap-exporter/tests/congestion.py)"""
    if os.geteuid():
        pytest.skip("programs of the kernel need root")
    done = subprocess.run([check, "registered", check.with_name("ca.bpf.o"), "1"], capture_output=True, text=True)
    if "does not take" in done.stderr:
        pytest.skip(f"this kernel has no struct_ops by links (Linux 6.4), or no BTF: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    offered = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()
    assert "oal_ecn" not in offered.split()
