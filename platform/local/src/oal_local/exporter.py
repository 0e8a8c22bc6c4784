"""The real exporter as a child process: its configuration, its status, its end, and an independent count of what it
made.
"""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from oal_local.errors import PlatformError
from oal_local.paths import REPO

BINARY = REPO / "ap-exporter" / "build" / "ap-exporter"


def uci(sections: list[tuple[str, str, dict]]) -> str:
    """UCI text of (type, name, options) sections; values must hold no single quote."""
    lines = []
    for kind, name, options in sections:
        lines.append(f"config {kind} '{name}'" if name else f"config {kind}")
        lines += [f"\toption {key} '{value}'" for key, value in options.items()]
        lines.append("")
    return "\n".join(lines)


class Exporter:
    """One exporter process with a configuration of its own. `folder` takes its configuration, status socket, log and
    capture; `binary` may be the build for hosts; `under` is a command that becomes it, as nsenter does.
    """

    def __init__(self, folder: Path, name: str, ap_id: str, site: str, sections: list[tuple[str, str, dict]],
                 binary: Path = BINARY, under: tuple[str, ...] = ()):
        self.folder, self.name, self.binary, self.under = Path(folder), name, binary, under
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config = self.folder / f"{name}.uci"
        self.socket = self.folder / f"{name}.sock"
        self.capture = self.folder / f"{name}.oalcap"
        self.log = self.folder / f"{name}.log"
        main = ("exporter", "main", {"ap_id": ap_id, "site": site, "status_socket": self.socket})
        self.config.write_text(uci([main, *sections, ("file", "count", {"path": self.capture})]))
        self.process: subprocess.Popen | None = None

    def start(self) -> "Exporter":
        """Start it; PlatformError if it does not answer on its status socket."""
        if not self.binary.exists():
            raise PlatformError(f"{self.binary.relative_to(REPO)} is not built; run `make build`")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*self.under, self.binary, "run", "-c", self.config], stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while self.status() is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise PlatformError(
                    f"the exporter `{self.name}` did not start; its log {self.log}"
                    f" says:\n{self.log.read_text()[-2000:]}"
                )
            time.sleep(0.05)
        return self

    def status(self) -> dict | None:
        """Health as the daemon's own `status` command gives it; None while it does not answer."""
        done = subprocess.run([self.binary, "status", "-c", self.config], capture_output=True, text=True)
        try:
            return json.loads(done.stdout) if done.returncode == 0 else None
        except json.JSONDecodeError:
            return None

    def stop(self, timeout: float = 30) -> int:
        """SIGTERM: it flushes what it holds and ends. Returns its exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise PlatformError(f"the exporter `{self.name}` did not end within {timeout:.0f} s of SIGTERM") from None

    def let_go(self) -> int:
        """let_go_of() this process."""
        return let_go_of(self.log)

    def count(self) -> dict:
        """count_capture() of what this process made."""
        return count_capture(self.capture)


def count_capture(path: Path) -> dict:
    """What a capture holds, by `ap-exporter count`, the independent count at the source: {"batches": n, "rows": {table:
    n}, "aps": {…}, …}.
    """
    done = subprocess.run([BINARY, "count", path], capture_output=True, text=True)
    if done.returncode:
        raise PlatformError(f"ap-exporter count {path}: {done.stderr.strip()}")
    counted = json.loads(done.stdout)
    return counted | {"batches": sum(counted["batches"].values())}


def let_go_of(log: Path) -> int:
    """Batches that the Kafka sink gave up, by the closing account that the daemon leaves in its log."""
    found = re.findall(r"kafka: \d+ batches delivered, (\d+) let go", log.read_text(errors="replace"))
    if not found:
        raise PlatformError(f"the exporter left no closing account in {log}; it did not end by itself")
    return int(found[-1])
