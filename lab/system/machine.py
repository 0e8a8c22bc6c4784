"""A whole access point in an emulator: Debian's QEMU, our kernel, an initial file system, a plan (guest/init.sh).

Time in the guest is that of its instructions (`-icount`): one takes 2^shift ns, and a processor with nothing to do goes
on to its next timer at once. So what happens in there does not depend on how fast or how busy this machine is.
"""
import contextlib
import dataclasses
import os
import pathlib
import re
import subprocess
import tempfile
import time

from . import cpio

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build/lab/system"
#: Real seconds after which a guest that goes on is taken for one that hangs.
PATIENCE_S = 3600
APPLETS = ("sh cat chmod chown cp cut date grep head id insmod kill ln logger ls mkdir mount mv nsenter ps rm sed "
           "sleep tail test tr touch unshare wc nc ping ip brctl").split()
#: The kernel's own, which musl leaves to others.
HEADERS = "-idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu".split()
STRICT = "-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Os -static".split()


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


@contextlib.contextmanager
def replaced(path: pathlib.Path):
    """What is written to the path that this gives takes the file's place at the end: another play may be using it."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    yield new
    new.replace(path)


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str  # of a kernel, kernel/NAME.fragment, and of a target of ap-exporter/Makefile
    emulator: tuple[str, ...]
    console: str

    def kernel(self) -> pathlib.Path:
        """Beside it stand its System.map and oal_sampler.ko."""
        return pathlib.Path(run(HERE / "kernel/build.sh", self.name))

    def compiler(self) -> str:
        return f"{userland()}/bin/musl-gcc" if self.name == "mips" else "musl-gcc"

    def busybox(self) -> pathlib.Path:
        return pathlib.Path(f"{userland()}/busybox" if self.name == "mips" else "/bin/busybox")

    def setup(self) -> None:
        """Everything that is built once and cached, kernel included."""
        run(ROOT / "platform/setup/apt", *("qemu-system-mips",) if self.name == "mips" else
            ("qemu-system-x86", "musl-tools", "busybox-static", "libc6-dev"))
        self.busybox()
        self.kernel()

    def agent(self) -> pathlib.Path:
        """ap-exporter against musl: on MIPS in MIPS16 code, as OpenWrt builds packages."""
        out = BUILD / self.name / "ap-exporter"
        run("make", "--no-print-directory", "-C", ROOT / "ap-exporter", "static-musl", f"STATIC_MUSL={out}",
            f"STATIC_MUSL_CC={self.compiler()}", *((f"STATIC_MUSL_FLAGS=-Os {' '.join(HEADERS)}",)
                                                  if self.name == "x86_64" else ()))
        return out

    def air(self) -> pathlib.Path:
        out = BUILD / self.name / "air"
        out.parent.mkdir(parents=True, exist_ok=True)
        with replaced(out) as new:
            run(self.compiler(), *STRICT, *(HEADERS if self.name == "x86_64" else ()), "-o", new,
                *sorted((HERE / "guest").glob("*.c")))
        return out


MIPS = Machine("mips", ("qemu-system-mips", "-M", "malta", "-cpu", "24Kf"), "ttyS0")
X86_64 = Machine("x86_64", ("qemu-system-x86_64", "-M", "q35", "-cpu", "max"), "ttyS0")


def userland() -> str:
    return run(HERE / "userland/build.sh")


def plugin(counts: pathlib.Path, kernel: pathlib.Path) -> str:
    """QEMU's argument for counting; what the kernel executes while it waits is left out."""
    table = kernel.with_name("System.map").read_text()
    idle = [f"{name[4:]}={int(address, 16) & 0xffffffff:x}"
            for address, name in re.findall(r"^(\w+) \w (oal_idle_\w+)$", table, re.M)]
    return ",".join([str(counter()), f"to={counts}", *idle])


def counter() -> pathlib.Path:
    out = BUILD / "count.so"
    out.parent.mkdir(parents=True, exist_ok=True)
    with replaced(out) as new:
        run("gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-o",
            new, HERE / "count/count.c")
    return out


@dataclasses.dataclass
class Played:
    console: list[str]
    #: (number of the mark, instructions in user space, in the kernel) since power-on, in order
    marks: list[tuple[int, int, int]]

    def windows(self) -> list[tuple[int, int]]:
        """Instructions in user space and in the kernel between each first mark and its second."""
        pairs = list(zip(self.marks[::2], self.marks[1::2], strict=True))
        assert all((a[0], b[0]) == (1, 2) for a, b in pairs), self.marks
        return [(b[1] - a[1], b[2] - a[2]) for a, b in pairs]

    def lines(self, word: str) -> list[str]:
        """What stands behind this word on the lines that begin with it."""
        return [line[len(word) + 1:] for line in self.console if line.startswith(word + " ")]


def wait_for(command: list, console: pathlib.Path) -> None:
    """Until the emulator ends. A guest whose kernel panicked may not: that is told by its console."""
    began = time.monotonic()
    words = [str(word) for word in command]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True) as emulator:
        try:
            while emulator.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    emulator.wait(1)
                said = console.read_text(errors="replace") if console.exists() else ""
                failed = re.search("Kernel panic|System halted|^failed: ", said, re.M)
                if time.monotonic() - began > PATIENCE_S or failed:
                    raise RuntimeError("the guest does not end by itself; the end of its console:\n" + said[-3000:])
        finally:
            emulator.kill()
    if emulator.returncode:
        raise RuntimeError(f"the emulator ended with {emulator.returncode}")


def play(machine: Machine, plan: str, shift: int, files: dict, memory_mb: int = 128, quiet_air: bool = True) -> Played:
    """Boot, play, and wait for the end. `files`: further ones, see cpio.archive(). An instruction takes 2^shift ns.
    With `quiet_air` nobody hears what is sent, so that stations of no radio cost what they cost an access point.
    """
    kernel = machine.kernel()
    contents = {
        "/bin/busybox": machine.busybox(), **{f"/bin/{name}": "->busybox" for name in APPLETS},
        "/bin/air": machine.air(), "/usr/sbin/ap-exporter": machine.agent(),
        "/lib/oal_sampler.ko": kernel.with_name("oal_sampler.ko"), "/init": (HERE / "guest/init.sh").read_text(),
        "/plan": plan, "/proc": None, "/sys": None, "/dev": None,
        "/tmp": None, "/var": None, "/var/run": "->/tmp/run", "/root": None,
        "/etc/passwd": "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
        "/etc/group": "root:x:0:\nnobody:x:65534:\n"
    }
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        initrd, console, counts = (pathlib.Path(folder, name) for name in ("initrd", "console", "counts"))
        initrd.write_bytes(cpio.archive(contents | files))
        command = [*machine.emulator, "-m", str(memory_mb), "-kernel", kernel, "-initrd", initrd, "-append",
                   f"console={machine.console} quiet panic=1 mac80211_hwsim.radios=2 "
                   f"mac80211_hwsim.quiet_air={int(quiet_air)}",
                   "-nodefaults", "-display", "none", "-monitor", "none", "-no-reboot", "-serial", f"file:{console}",
                   "-icount", f"shift={shift},align=off,sleep=off", "-rtc", "clock=vm,base=2026-01-01",
                   "-plugin", plugin(counts, kernel)]
        wait_for(command, console)
        said = console.read_text(errors="replace").replace("\r", "").splitlines()
        marks = [tuple(map(int, line.split())) for line in counts.read_text().splitlines()]
    if "done" not in said:
        raise RuntimeError("the guest did not finish its plan; the end of its console:\n" + "\n".join(said[-25:]))
    return Played(said, marks)
