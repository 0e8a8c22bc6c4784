"""What an AP puts on the wire at the operating point: its capture, each batch compressed and framed as librdkafka sends
it.

Method: one Kafka record batch per batch of the exporter (the exporter's linger is shorter than a batch), an lz4 frame
at the default level as librdkafka's built-in lz4 makes it, plus Kafka's record batch header (61 bytes), record framing
and key, and the produce request around it (50 bytes). Not in it: TLS (29 bytes a record), TCP and IP headers,
acknowledgements, the broker's answers.
"""
import collections
import json
import pathlib
import struct
import sys

import lz4.frame

RECORD = struct.Struct("<4sB3xIQI")  # magic, topic, length, t0_us, crc
TOPICS = ("ap.samples.v1", "ap.packets.v1", "ap.events.v1")
BATCH_HEADER, RECORD_FRAMING, REQUEST = 61, 12, 50
SKIP_US = 3_000_000  # stations associate, flows start


def records(capture: pathlib.Path):
    """(topic, t0_us, bytes) of each batch; format: ap-exporter/src/wire/capture_file.h."""
    data, at = capture.read_bytes(), 8
    if data[:6] != b"OALCAP":
        raise SystemExit(f"lab: {capture} is not a capture of ap-exporter")
    while at + RECORD.size <= len(data):
        magic, topic, length, t0_us, _ = RECORD.unpack_from(data, at)
        if magic != b"OALr":
            raise SystemExit(f"lab: {capture} is damaged at byte {at}")
        yield topic, t0_us, data[at + RECORD.size:at + RECORD.size + length]
        at += RECORD.size + length


def measure(capture: pathlib.Path, ap_id: str) -> dict:
    """Bytes a second by topic, before and after lz4, over the run less its first seconds."""
    found = list(records(capture))
    first = min(t0 for _, t0, _ in found) + SKIP_US
    last = max(t0 for _, t0, _ in found)
    raw, wire = collections.Counter(), collections.Counter()
    for topic, t0, batch in found:
        if first <= t0 < last:  # the last batch is cut short by the end of the run
            raw[topic] += len(batch)
            framed = len(
                lz4.frame.compress(b"\0" * RECORD_FRAMING + ap_id.encode() + batch, content_checksum=False,
                                   store_size=False))
            wire[topic] += framed + BATCH_HEADER + REQUEST + len(TOPICS[topic])
    seconds = (last - first) / 1e6
    return {
        "seconds": seconds, "raw": {TOPICS[t]: n / seconds for t, n in raw.items()},
        "wire": {TOPICS[t]: n / seconds for t, n in wire.items()}
    }


def main() -> int:
    capture, truth, output = map(pathlib.Path, sys.argv[1:4])
    found = measure(capture, "ap-0001")
    t = json.loads(truth.read_text())
    a, b = t["seconds"][3], t["seconds"][-3]
    packets = sum(b[key] - a[key] for key in ("down_out_segs", "up_out_segs")) / (b["t_s"] - a["t_s"])
    total = sum(found["wire"].values())
    parts = ", ".join(f"{topic} {value / 1000:.1f}" for topic, value in sorted(found["wire"].items()))
    note = (
        f"{found['seconds']:.0f} s of lab scenario operating-point: {len(t['end']['stations'])} stations, 20"
        f" neighbours, {packets:.0f} TCP packets/s; KB/s by topic after lz4: {parts}; before:"
        f" {sum(found['raw'].values()) / 1000:.1f}; without TLS, TCP and IP headers"
    )
    figures = [{
        "name": "wire.bytes_per_second_per_ap", "value": round(total), "unit": "B/s", "command": "make -C lab bench",
        "note": note
    }]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"{figures[0]['name']}: {total:,.0f} B/s ({note})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
