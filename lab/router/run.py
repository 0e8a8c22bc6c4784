"""The host's side: the guest plays the steps of inside.py, and its captures are read."""
import json
import struct
import subprocess
from pathlib import Path
from unittest import mock

from conformance.segment import Segment
from host import guest, scenario
from sampler.run import EXPORTER, ROOT, built

KERNEL = "6.12"
ETHERNET, TAG = 14, 4
PPPOE_SESSION, PPP_IPV4 = 0x8864, 0x0021


def play(out: Path) -> dict:
    """What the guest saw (inside.py says it), the rows of its exporter and its captures, as (µs, frame)."""
    folder = built(KERNEL)
    venv = subprocess.run([ROOT / "platform/setup/venv", ROOT / "schema/requirements.txt"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    plan = {
        **scenario.plan("router", {"stations": [{"name": "client", "count": 1}], "ap": {"security": "open"}}),
        "exporter": str(EXPORTER.resolve()), "python": f"{venv}/bin/python"
    }
    with mock.patch.object(guest, "kernel", lambda: str(folder / "linux")):
        guest.play(plan, out, extra=["MAIN=router.inside"], timeout_s=900)
    facts = json.loads((out / "router.json").read_text())
    if "error" in facts:
        return facts
    dump = subprocess.run([EXPORTER, "dump", out / "router.oalcap"], capture_output=True, text=True, check=True).stdout
    return facts | {"rows": [json.loads(line) for line in dump.splitlines()],
                    **{name: list(frames(out / f"router.{name}.pcap")) for name in ("server", "conduit")}}


def frames(path: Path):
    """(µs, frame) of a pcap file of this machine's byte order."""
    data, at = path.read_bytes(), 24
    while at + 16 <= len(data):
        s, us, kept, _ = struct.unpack_from("=IIII", data, at)
        yield s * 1_000_000 + us, data[at + 16:at + 16 + kept]
        at += 16 + kept


def segment(t_us: int, frame: bytes) -> Segment | None:
    """Of a frame at the server, in a session of PPPoE or not. None: it is no TCP."""
    if struct.unpack_from(">H", frame, 12)[0] == PPPOE_SESSION:
        if struct.unpack_from(">H", frame, ETHERNET + 6)[0] != PPP_IPV4:
            return None
        frame = frame[:12] + struct.pack(">H", 0x0800) + frame[ETHERNET + 8:]
    try:
        return Segment(t_us, frame, len(frame))
    except (ValueError, IndexError, struct.error):
        return None
