"""The whole exporter on the AP, in mode enforce, with its agent at a push service of the suite; what it decided is read
from its own capture.
"""
import contextlib
import json
import shutil
import signal
import subprocess
from pathlib import Path

from guest.exporter import section
from guest.sh import start, write

from .rewriter import now_us

AP = "conformance"
FOLDER = Path("/run/lab/daemon")
KILL_FILE = str(FOLDER / "kill")


class Push:
    """push.py as a process of the guest."""

    def __init__(self, python: str, log: str, noise_dbm: int | None, policy: dict, marks: bool = False):
        shutil.rmtree(FOLDER, ignore_errors=True)  # of the case before
        FOLDER.mkdir()
        self.process = subprocess.Popen(
            [python, "-m", "conformance.push",
             str(FOLDER), AP,
             json.dumps({"noise_dbm": noise_dbm, "policy": policy, "marks": marks})], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=open(log, "wb"), text=True, bufsize=1)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the push service did not start: {open(log).read()[-2000:]}")
        self.port = int(line)

    def switch(self, to: str) -> None:
        self.process.stdin.write(to + "\n")

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(timeout=30)


class Exporter:
    """`action`: the section that says what it may do, and `options` of that."""

    def __init__(self, binary: str, port: int, options: dict, folder: str, case: str, action: str = "rwnd"):
        self.binary, self.socket, self.capture = binary, str(FOLDER / "status.sock"), f"{folder}/{case}.oalcap"
        agent = {
            "url": f"https://127.0.0.1:{port}/", "ca": FOLDER / "test-ca.pem", "cert": FOLDER / "%s.pem",
            "key": FOLDER / "%s.key", "trusted_keys": FOLDER / "trusted", "retry_max_s": 1
        }
        write(
            str(FOLDER / "uci"),
            section("exporter", {"ap_id": AP, "site": "lab", "status_socket": self.socket})
            + section("nl80211", {"interface": "wlan0"}) + section("packet", {"interface": "lan0"})
            + section("qdisc", {"interface": "wlan0"}) + section("agent", agent)
            + section(action, {"mode": "enforce", "kill_file": KILL_FILE, **options})
            + section("file", {"path": self.capture}))
        self.log = f"{folder}/{case}.exporter.log"
        self.process = start([binary, "run", "-c", str(FOLDER / "uci")], self.log)

    def status(self) -> dict:
        done = subprocess.run([self.binary, "status", "-s", self.socket], capture_output=True, text=True)
        if self.process.poll() is not None:
            raise RuntimeError(f"the exporter ended with {self.process.returncode}: {open(self.log).read()[-2000:]}")
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout else {}

    def control(self) -> dict:
        return self.status().get("control", {})

    def rows(self, *tables: str) -> list[dict]:
        """Of the capture, as `ap-exporter dump` gives them; once it has ended."""
        text = subprocess.run([self.binary, "dump", self.capture], capture_output=True, text=True, check=True).stdout
        return [row for row in map(json.loads, text.splitlines()) if row.get("table") in tables]

    def kill(self) -> int:
        """SIGKILL; the moment in µs."""
        self.process.kill()
        at_us = now_us()
        self.process.wait()
        return at_us

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=20)
