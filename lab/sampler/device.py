"""/dev/oal-sampler by hand: refusals, and a reader that does not read."""
import fcntl
import mmap
import os
import struct
import time

DEVICE = "/dev/oal-sampler"
VERSION, TICK_NS = 1, 4_000_000
#: _IOW('O', 1, struct oal_sampler_start), of version, ifindex, first_ns, tick_ns, active_hold_ticks, max_stations,
#: ring_bytes
START, STRUCT = 1 << 30 | 32 << 16 | ord("O") << 8 | 1, "=IIQIIII"
HEADER = ("magic", "version", "ring_bytes", "state", "head", "tick", "ticks_missed", "records_lost", "stations",
          "stations_refused", "tick_us", "counters_us", "longest_us")
READER_AT, RING_AT = 4096, 8192


class Device:
    def __init__(self):
        self.fd = os.open(DEVICE, os.O_RDWR)
        self.map = None

    def start(self, ifindex: int, version: int = VERSION, stations: int = 512, ring: int = 1 << 14,
              tick_ns: int = TICK_NS) -> int:
        """0 or an errno."""
        want = struct.pack(STRUCT, version, ifindex, time.monotonic_ns(), tick_ns, 250, stations, ring)
        try:
            fcntl.ioctl(self.fd, START, want)
        except OSError as error:
            return error.errno
        if self.map is None:
            self.map = mmap.mmap(self.fd, RING_AT + ring)
        return 0

    def header(self) -> dict:
        return dict(zip(HEADER, struct.unpack_from(f"={len(HEADER)}I", self.map)))

    def write_tail(self, tail: int) -> None:
        struct.pack_into("=I", self.map, READER_AT, tail)

    def close(self) -> None:
        if self.map:
            self.map.close()
        os.close(self.fd)
