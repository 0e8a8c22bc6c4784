"""ap-exporter inside the guest, once per AP: its configuration (UCI), its start and its end."""
import os
import shutil
import signal
import subprocess

from .sh import start, write


def section(kind: str, options: dict) -> str:
    return f"config {kind}\n" + "".join(f"\toption {key} '{value}'\n" for key, value in options.items()) + "\n"


def configure(path: str, ap_id: str, site: str, wlan: str, lan: str, sinks: list[dict], neighbours: bool) -> None:
    """The AP's /etc/config/ap-exporter: what to sample, and where it goes (sections of sinks, agent and rwnd)."""
    text = section("exporter", {"ap_id": ap_id, "site": site, "status_socket": f"/run/lab/{ap_id}.sock"})
    text += section("nl80211", {"interface": wlan}) + section("tap", {"interface": wlan})
    text += section("qdisc", {"interface": wlan}) + section("qdisc", {"interface": lan})
    if neighbours:
        text += section("beacon", {"interface": wlan})
    for sink in sinks:
        text += section(sink["kind"], {key: value for key, value in sink.items() if key != "kind"})
    write(path, text)


def own_sections(plan: dict, ap_id: str, host: str) -> list[dict]:
    """The plan's own sections, and what they name: files of the host as the guest sees them, the bundle (one for
    all, or one for each AP) as if this AP had stored it.
    """
    sections = [{key: host + value[5:] if str(value).startswith("host:") else value for key, value in s.items()}
                for s in plan["sections"]]
    if plan["bundle"]:
        folder = f"/run/lab/state-{ap_id}"
        os.mkdir(folder)
        bundle = plan["bundle"]
        stem = ap_id if plan["of_policy"] == "rwnd-fair" else f"{ap_id}@{plan['of_policy']}"
        shutil.copy(host + (bundle[ap_id] if isinstance(bundle, dict) else bundle), f"{folder}/{stem}.bundle")
        sections = [{**s, "state_dir": folder} if s["kind"] == "agent" else s for s in sections]
    return sections


def begin(binary: str, config: str, log: str, ns: str | None) -> subprocess.Popen:
    # a sampler that waits its turn misses ticks
    return start(["nice", "-n", "-10", binary, "run", "-c", config], log, ns)


def end(process: subprocess.Popen) -> int:
    """SIGTERM, so that the last batch is flushed; the exit status."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    return process.wait(timeout=20)
