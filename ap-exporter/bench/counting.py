"""Instructions on big-endian MIPS, counted by what qemu executes between mark_begin() and mark_end() of a bench
program."""

import glob
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable


def output(arguments: list[str]) -> str:
    """Standard output and error of a command; ends the bench, with the end of both, when it fails."""
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench: {' '.join(arguments)} failed:\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def functions(work: str, *units: str) -> set[str]:
    """Names of the functions of object files of the MIPS build; a unit is a pattern like feature/feature*."""
    objects = [path for unit in units for path in glob.glob(f"{work}/mips/{unit}.o")]
    table = output(["mips-linux-gnu-nm", "--defined-only", *objects]).splitlines()
    return {words[-1] for words in map(str.split, table) if len(words) >= 2 and words[-2] in "tT"}


def ranges(binary: str, counted: Callable[[str], bool]) -> str:
    """Address ranges, for qemu's -dfilter, of the functions whose name is counted; the log of a whole program would be
    many times as long."""
    out = []
    for line in output(["mips-linux-gnu-nm", "-S", "--defined-only", binary]).splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tT" and counted(words[3]):
            start, size = int(words[0], 16), int(words[1], 16)
            out.append(f"{start:#x}..{start + size - 1:#x}")
    return ",".join(out)


def marked(mips_run: str, command: list[str], where: str) -> tuple[list[int], str]:
    """Instructions between each mark_begin() and the next mark_end(), in order, and the program's standard output."""
    counts: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        fifo = f"{folder}/log"
        os.mkfifo(fifo)
        run = subprocess.Popen(
            [*mips_run.split(), "-singlestep", "-d", "exec,nochain", "-dfilter", where, "-D", fifo, *command],
            stdout=subprocess.PIPE,
            text=True,
        )
        inside = n = 0
        with open(fifo) as log:
            for line in log:
                if line.endswith("mark_begin\n"):
                    inside, n = 1, 0
                elif line.endswith("mark_end\n"):
                    if inside:
                        counts.append(n)
                    inside = 0
                elif inside:
                    n += 1
        text = run.communicate()[0]
    if run.returncode:
        sys.exit(f"bench: {' '.join(command)} failed under {mips_run}")
    return counts, text
