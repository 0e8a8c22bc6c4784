"""What a capture and the client say of a download over QUIC. Packets are encrypted: what they are is told by who sent
them and by their size, what they acknowledge by nothing; so goodput is what the client's application had read, and a
packet that was lost counts as sent again, since what it carried was."""
import functools
import os
import pathlib
import subprocess

import numpy as np

from .conversation import Conversation

SOURCE = pathlib.Path(__file__).with_name("quic")
GOTOOL = SOURCE.parents[2] / "platform/setup/gotool"


@functools.cache
def program() -> pathlib.Path:
    """Path of client and server: static, because they run in the guest; built once."""
    done = subprocess.run([GOTOOL, SOURCE, "-ldflags", "-s -w"], stdout=subprocess.PIPE, text=True, check=True,
                          env=os.environ | {"TOOLS": "."})
    return pathlib.Path(done.stdout.strip()) / "quic"


def sources() -> list[pathlib.Path]:
    """What the program is made of."""
    return [*sorted(SOURCE.glob("*.go")), SOURCE / "go.mod", SOURCE / "go.sum"]


class Talk(Conversation):
    """One connection: packets of the server are its data, `transfers` what the client says that it read.

    `answers` and `acks` are empty: nobody but the ends knows which packets acknowledge what."""

    def __init__(self, packets: np.ndarray, sender_tap: int, receiver_tap: int, listener: tuple[int, int],
                 transfers: list[dict]):
        super().__init__(packets, sender_tap, receiver_tap, listener)
        self.transfers, self.first_seq = transfers, None
        self.open_ns = min(t["begin_ns"] for t in transfers)

    def retransmitted(self) -> np.ndarray:
        return self.where < 0

    def acknowledged(self, t_ns: float) -> int:
        """Bytes that the application had read by a time."""
        return sum(read_by(t, t_ns) for t in self.transfers)

    def completed(self, size: int) -> float | None:
        took = [ms for _, ms in self.bursts(size)]
        return took[0] if took else None

    def bursts(self, size: int) -> list[tuple[int, float | None]]:
        """Of a transfer: from when it was asked for until its last byte was read."""
        return [(t["begin_ns"], (t["end_ns"] - t["begin_ns"]) / 1e6 if t["end_ns"] and t["bytes"] >= size else None)
                for t in self.transfers]


def read_by(transfer: dict, t_ns: float) -> int:
    """Bytes of it that had been read by a time: entries of its progress are some 10 ms apart."""
    if not transfer["progress"]:
        return 0
    at, total = np.array([(transfer["begin_ns"], 0), *transfer["progress"]], float).T
    return int(np.interp(t_ns, at, total))


def talks(packets: np.ndarray, taps: tuple[int, int], client: int, transfers: list[dict]) -> list[Talk]:
    """A flow's connections, each from a port of its own. `packets`: of its client's address, UDP alone."""
    return [Talk(packets[(packets["destination_port"] == port) | (packets["source_port"] == port)], *taps,
                 (client, port), [t for t in transfers if t["port"] == port])
            for port in sorted({t["port"] for t in transfers if t["port"]})]
