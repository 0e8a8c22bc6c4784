"""The host's side: a guest of one kernel plays the steps of inside.py."""
import json
import os
import subprocess
from pathlib import Path
from unittest import mock

from host import guest, scenario

ROOT = guest.LAB.parent
EXPORTER = ROOT / "ap-exporter/build/ap-exporter"
KERNELS = ("6.1", "6.12")


def built(kernel: str) -> Path:
    """Folder with the guest's kernel and the module for it."""
    return Path(
        subprocess.run([guest.LAB / "kernel/sampler.sh"], check=True, stdout=subprocess.PIPE, text=True,
                       env={**os.environ, "LAB_KERNEL": kernel}).stdout.strip())


def play(folder: Path, out: Path, exporter: Path = EXPORTER) -> dict:
    """What the guest saw (inside.py says it), and of both exporters the rows, by the time of their tick."""
    plan = {
        **scenario.plan("sampler", {"stations": [{"name": "client", "count": 2}], "ap": {"security": "open"}}),
        "exporter": str(exporter.resolve()), "module": str(folder / "oal_sampler.ko")
    }
    with mock.patch.object(guest, "kernel", lambda: str(folder / "linux")):
        guest.play(plan, out, extra=["MAIN=sampler.inside"], timeout_s=900)
    facts = json.loads((out / "sampler.json").read_text())
    return facts | {"rows": {source: rows(exporter, out, source) for source in ("nl80211", "auto")}}


def rows(exporter: Path, out: Path, source: str) -> list[dict]:
    text = subprocess.run([exporter, "dump", out / f"sampler.{source}.oalcap"], capture_output=True, text=True,
                          check=True).stdout
    return [json.loads(line) for line in text.splitlines()]
