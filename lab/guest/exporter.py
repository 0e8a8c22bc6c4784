"""ap-exporter inside the guest, once per AP: its configuration (UCI), its start and its end."""
import signal
import subprocess

from .sh import start, write


def section(kind: str, options: dict) -> str:
    return f"config {kind}\n" + "".join(f"\toption {key} '{value}'\n" for key, value in options.items()) + "\n"


def configure(path: str, ap_id: str, wlan: str, lan: str, sinks: list[dict], neighbours: bool) -> None:
    """The AP's /etc/config/ap-exporter: what to sample, and where it goes (sections of the two sinks: file, kafka)."""
    text = section("exporter", {"ap_id": ap_id, "site": "lab", "status_socket": f"/run/lab/{ap_id}.sock"})
    text += section("nl80211", {"interface": wlan}) + section("packet", {"interface": lan})
    text += section("qdisc", {"interface": wlan}) + section("qdisc", {"interface": lan})
    if neighbours:
        text += section("beacon", {"interface": wlan})
    for sink in sinks:
        text += section(sink["kind"], {key: value for key, value in sink.items() if key != "kind"})
    write(path, text)


def begin(binary: str, config: str, log: str, ns: str | None) -> subprocess.Popen:
    return start(["nice", "-n", "-10", binary, "run", "-c", config], log, ns)  # a sampler that waits its turn misses ticks


def end(process: subprocess.Popen) -> int:
    """SIGTERM, so that the last batch is flushed; the exit status."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    return process.wait(timeout=20)
