"""Turn a run with --record-ms and --pcap into test data for parsers: the netlink records as they are, the pcap cut to
their time.
"""
import pathlib
import struct
import sys

HEADER = struct.Struct("<BIQ")  # kind, length, time_ns
README = """# Raw kernel input of a live AP

Written by `make -C lab sample` from `lab/scenarios/sample.yaml`: ten stations with TXQs under
load on a mac80211_hwsim AP, 20 neighbours.

- `sample.nl`: records one after another, each `u8 kind`, `u32 length`, `u64 time_ns` (CLOCK_REALTIME), all
  little-endian, then
  `length` bytes: every reply to one request as the kernel sent it, netlink headers and the final NLMSG_DONE
  included, of a
  little-endian machine. Kinds come every 4 ms tick; those marked * on the first tick only.

| kind | request | scope |
|---|---|---|
| 1 | NL80211_CMD_GET_STATION dump | wlan0 |
| 2 | NL80211_CMD_GET_SURVEY dump | wlan0 |
| 3* | NL80211_CMD_GET_INTERFACE | wlan0 |
| 4* | NL80211_CMD_GET_SCAN dump | wlan0 |
| 5 | RTM_GETQDISC dump | all interfaces |
| 6* | RTM_GETLINK dump | all interfaces |
| 7* | RTM_GETNEIGH dump, PF_BRIDGE | the bridge's forwarding table |

- `sample.pcap`: TCP packets of the wired port (`lan0`) in the same 100 ms and 20 ms around them, 96 bytes each.
"""


def span(path: pathlib.Path) -> tuple[int, int]:
    """Time of the first and of the last record, in ns."""
    data, at, times = path.read_bytes(), 0, []
    while at + HEADER.size <= len(data):
        _, length, time_ns = HEADER.unpack_from(data, at)
        times.append(time_ns)
        at += HEADER.size + length
    if not times:
        raise SystemExit(f"lab: {path} holds no record: was the run made with --record-ms?")
    return times[0], times[-1]


def cut(source: pathlib.Path, target: pathlib.Path, first_ns: int, last_ns: int) -> int:
    """Copy the packets between two times (classic pcap, microseconds, this machine's byte order); how many."""
    data, at, packets = source.read_bytes(), 24, 0
    if data[:4] != struct.pack("<I", 0xa1b2c3d4):
        raise SystemExit(f"lab: {source} is not a little-endian microsecond pcap")
    out = bytearray(data[:24])
    while at + 16 <= len(data):
        seconds, micros, kept, _ = struct.unpack_from("<IIII", data, at)
        if first_ns <= seconds * 10**9 + micros * 1000 <= last_ns:
            out += data[at:at + 16 + kept]
            packets += 1
        at += 16 + kept
    target.write_bytes(out)
    return packets


def main() -> int:
    results, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    first, last = span(results / "sample.nl")
    (target / "sample.nl").write_bytes((results / "sample.nl").read_bytes())
    packets = cut(results / "sample.pcap", target / "sample.pcap", first - 20_000_000, last + 20_000_000)
    (target / "README.md").write_text(README)
    print(f"lab: {target}: {(target / 'sample.nl').stat().st_size} bytes of netlink, {packets} packets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
