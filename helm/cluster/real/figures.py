"""What a run measured: for the summary, and for build/bench/real-cluster.json."""
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "build" / "bench" / "real-cluster.json"
MEASURED: dict[str, tuple[float, str]] = {}


def measured(name: str, value: float, unit: str = "s") -> None:
    MEASURED[name] = (round(value, 1), unit)


def write(command: str) -> None:
    """Beside the figures of other commands; in place of all that this one wrote before."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    others = [f for f in (json.loads(FILE.read_text()) if FILE.exists() else []) if f["command"] != command]
    FILE.write_text(
        json.dumps(others + [{
            "name": name, "value": value, "unit": unit, "command": command,
            "note": "running pods on this machine: containerd, runc, kubelet, kube-proxy, CoreDNS"
        } for name, (value, unit) in MEASURED.items()], indent=1) + "\n")
