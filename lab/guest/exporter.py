"""ap-exporter inside the guest, once per AP: its configuration (UCI), its start and its end."""
import os
import signal
import subprocess

from .sh import start, write


def configure(path: str, ap_id: str, wlan: str, lan: str, sink: dict, extra: str) -> None:
    """Write /etc/config/ap-exporter's form: what to sample, and where it goes (a file, or Kafka)."""
    lines = ["config exporter 'main'", f"\toption ap_id '{ap_id}'", f"\toption status '/run/lab/{ap_id}.sock'",
             f"\tlist wifi '{wlan}'", f"\tlist wired '{lan}'", f"\toption sink '{sink['kind']}'", ""]
    lines.append(f"config {sink['kind']} '{sink['kind']}'")
    lines += [f"\toption {key} '{value}'" for key, value in sink.items() if key != "kind"]
    write(path, "\n".join(lines) + "\n" + extra)


def begin(binary: str, config: str, log: str, ns: str | None) -> subprocess.Popen:
    return start([binary, "-c", config], log, ns)


def end(process: subprocess.Popen) -> int:
    """SIGTERM, so that the last batch is flushed; the exit status."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGTERM)
    return process.wait(timeout=20)
