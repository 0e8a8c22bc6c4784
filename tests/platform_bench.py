"""Measure, on the running platform, what an AP costs on the wire and how long a sample takes to become a row.

    python tests/platform_bench.py            writes build/bench/wire-broker.json and build/bench/latency.json

Wire: the lab's operating point (10 stations, 1 queue, 20 neighbours, about 1500 packets/s) is replayed by the real
exporter into the real broker; counted is what the broker has on disk for the AP's three topics, that is lz4 batches of
librdkafka with Kafka's own framing. Latency: the demo's replay; per packet row, ClickHouse's time of insertion minus
the AP's time of capture.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "platform/local/src"))

from oal_local import demo  # noqa: E402
from oal_local.exporter import Exporter  # noqa: E402
from oal_local.platform import Platform  # noqa: E402
from oal_local.stages import TOPICS, Stages  # noqa: E402

BENCH = ROOT / "build/bench"
OPERATING_POINT = ROOT / "build/lab/operating-point.oalcap"
SECONDS = 60


def topic_bytes(platform) -> dict[str, int]:
    """Bytes of log segments per AP topic."""
    out = {t: 0 for t in TOPICS}
    for path in platform.state.kafka.rglob("*.log"):
        topic = path.parent.name.rpartition("-")[0]
        if topic in out:
            out[topic] += path.stat().st_size
    return out


def wait_ticks(seconds: float) -> float:
    """Let the replay run; returns the seconds that passed."""
    start = time.monotonic()
    time.sleep(seconds)
    return time.monotonic() - start


def wire(platform) -> list[dict]:
    if not OPERATING_POINT.exists():
        subprocess.run([ROOT / "lab/run", "operating-point"], check=True)
    command = "make bench ONLY=end-to-end (tests/platform_bench.py)"
    before = topic_bytes(platform)
    exporter = Exporter(platform.state.dir / "bench", "wire", "ap-wire", "bench",
                        [("replay", "point", {"file": OPERATING_POINT, "aps": 1, "loop": 1}),
                         demo.kafka_section(platform, "ap-wire", "bench")]).start()
    passed = wait_ticks(SECONDS)
    exporter.stop()
    after, counted = topic_bytes(platform), exporter.count()
    grown = {t: after[t] - before[t] for t in TOPICS}
    packets = counted["rows"].get("packet", 0)
    note = (
        f"replay of the lab's scenario operating-point, {packets / passed:.0f} packets/s,"
        f" {sum(counted['rows'].values()) / passed:.0f} rows/s, {SECONDS} s; log segments of the broker, lz4"
    )
    out = [{
        "name": "wire.broker_bytes_per_second_per_ap", "value": sum(grown.values()) / passed, "unit": "B/s",
        "command": command, "note": note
    }]
    out += [{
        "name": f"wire.broker_bytes_per_second.{t}", "value": grown[t] / passed, "unit": "B/s", "command": command,
        "note": note
    } for t in TOPICS]
    out.append({
        "name": "wire.broker_bytes_per_packet", "value": grown["ap.packets.v1"] / max(1, packets), "unit": "B",
        "command": command, "note": "ap.packets.v1 per TCP header, flow rows and drops included"
    })
    return out


def latency(platform) -> list[dict]:
    stages = Stages(platform, int(time.time() * 1e6))
    sections = demo.replay_sections(3)
    exporter = Exporter(
        platform.state.dir / "bench", "latency", "ap-latency", "bench",
        [*sections, demo.kafka_section(platform, "ap-latency", "bench", demo.replayed_aps(sections))]).start()
    wait_ticks(SECONDS)
    exporter.stop()
    counted = exporter.count()
    last = demo.drain(stages, counted)
    stages.close()
    note = (
        f"3 replayed APs, {SECONDS} s, {last['packets']} packet rows; checkpoint interval"
        f" {platform.settings.checkpoint_interval}"
    )
    command = "make bench ONLY=end-to-end (tests/platform_bench.py)"
    return [{
        "name": f"latency.sample_to_row_{p}_seconds", "value": last[f"latency_{p}_s"], "unit": "s", "command": command,
        "note": note
    } for p in ("p50", "p99")]


def main() -> int:
    BENCH.mkdir(parents=True, exist_ok=True)
    with Platform(ROOT / "build/bench-platform", ports="auto", only=["data"]) as platform:
        for name, measure in (("wire-broker", wire), ("latency", latency)):
            print(f"bench: {name}, {SECONDS} s …", file=sys.stderr)
            (BENCH / f"{name}.json").write_text(json.dumps(measure(platform), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
