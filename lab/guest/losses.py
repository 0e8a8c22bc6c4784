"""The cause of each lost packet, from the guest's kernel (lab/medium/losses.c): NAME.losses.csv, a line each."""
import collections
import csv
import os
import socket
import struct
import threading

PATH = "/sys/kernel/debug/hwsim_medium/losses"
RECORD = struct.Struct("=QIIIIHHHH16sBBHI")  # struct medium_loss
CAUSES = {1: "queue", 2: "air", 3: "filter"}
COLUMNS = ("t_ns", "device", "cause", "protocol", "source", "source_port", "destination", "destination_port", "ip_id",
           "seq", "payload_bytes")
READ_BYTES = 4096 * RECORD.size
PERIOD_S = 0.25  # the kernel keeps 32,768 records between two reads


def rows(raw: bytes) -> list[tuple[dict, int]]:
    """A line of the file by column, and how many records the kernel had to let go before it."""
    out = []
    for (t_ns, source, destination, seq, _, source_port, destination_port, ip_id, payload, device, protocol, cause, _,
         let_go) in RECORD.iter_unpack(raw):
        address = [socket.inet_ntoa(struct.pack("=I", value)) for value in (source, destination)]
        values = (t_ns, device.rstrip(b"\0").decode(), CAUSES[cause], protocol, address[0], source_port, address[1],
                  destination_port, ip_id, seq, payload)
        out.append((dict(zip(COLUMNS, values, strict=True)), let_go))
    return out


class Losses:
    """One log for all radios, read on its own thread. `follow` begins the sums of a radio, `count` gives them."""

    def __init__(self, path: str, log: str = PATH):
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.begin_ns: dict[str, int] = {}
        self.sums: dict[str, collections.Counter] = {}
        self.let_go = 0
        self.log = os.open(log, os.O_RDONLY)
        self.file = open(path, "w", newline="")
        self.writer = csv.DictWriter(self.file, COLUMNS, lineterminator="\n")
        self.writer.writeheader()
        self.thread = threading.Thread(target=self.loop, daemon=True)  # a run that fails ends all the same
        self.thread.start()

    def loop(self) -> None:
        while not self.stop.wait(PERIOD_S):
            self.drain()

    def drain(self) -> None:
        """Write what the kernel has."""
        with self.lock:
            while raw := os.read(self.log, READ_BYTES):
                for row, let_go in rows(raw):
                    self.let_go = max(self.let_go, let_go)
                    self.writer.writerow(row)
                    if self.begin_ns.get(row["device"], row["t_ns"] + 1) <= row["t_ns"]:
                        self.sums[row["device"]][row["cause"]] += 1

    def follow(self, device: str, begin_ns: int) -> None:
        self.drain()
        with self.lock:
            self.begin_ns[device], self.sums[device] = begin_ns, collections.Counter()

    def count(self, device: str) -> dict:
        """Losses on the way from this radio by cause since `follow`, and the records that are missing, of all radios.
        """
        self.drain()
        with self.lock:
            return {**{cause: self.sums[device][cause] for cause in CAUSES.values()}, "let_go": self.let_go}

    def end(self) -> None:
        self.stop.set()
        self.thread.join()
        self.drain()
        self.file.close()
        os.close(self.log)
