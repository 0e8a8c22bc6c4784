"""A client made of single frames: handshakes and ACKs that no TCP of this kernel would send."""
import socket
import struct

from guest.namespace import inside
from guest.sh import run

from .segment import ACK, SYN, folded


def tcp_frame(macs: tuple[str, str], address: tuple[str, str], ports: tuple[int, int], flags: int, window: int, *,
              seq: int = 1, ack: int = 1, options: bytes = b"", payload: bytes = b"", number: int = 0) -> bytes:
    """Ethernet, IPv4 and TCP with right checksums. Pairs are (from, to)."""
    options += b"\1" * (-len(options) % 4)
    source, target = (socket.inet_aton(a) for a in address)
    tcp = struct.pack(">HHIIBBHHH", *ports, seq & 0xffffffff, ack & 0xffffffff,
                      (20 + len(options)) // 4 << 4, flags, window, 0, 0) + options + payload
    tcp = tcp[:16] + struct.pack(">H",
                                 0xffff - folded(source + target + struct.pack(">HH", 6, len(tcp)) + tcp)) + tcp[18:]
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), number & 0xffff, 0x4000, 64, 6, 0, source, target)
    ip = ip[:10] + struct.pack(">H", 0xffff - folded(ip)) + ip[12:]
    return bytes.fromhex(macs[1].replace(":", "") + macs[0].replace(":", "")) + b"\x08\x00" + ip + tcp


def syn_options(scale: int | None) -> bytes:
    return struct.pack(">BBH", 2, 4, 1460) + (struct.pack(">BBBB", 1, 3, 3, scale) if scale is not None else b"")


class CraftedFlow:
    """Frames go out of the client's port towards an address that nobody has, at the server's port, so that nobody
    answers.
    """

    def __init__(self, ns: tuple[str, str], port: str, address: tuple[str, str], ports: tuple[int, int]):
        self.address, self.ports, self.number = address, ports, 0
        self.macs = tuple(run(f"cat /sys/class/net/{p}/address", n).strip() for n, p in zip(ns, (port, "eth0")))
        with inside(ns[0]):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.socket.bind((port, 0))

    def send(self, flags: int, window: int, **more) -> None:
        self.number += 1
        self.socket.send(tcp_frame(self.macs, self.address, self.ports, flags, window, number=self.number, **more))

    def syn(self, scale: int | None, window: int = 64240) -> None:
        self.send(SYN, window, seq=0, ack=0, options=syn_options(scale))

    def ack(self, window: int, n: int) -> None:
        self.send(ACK, window, ack=1 + 1448 * n)
