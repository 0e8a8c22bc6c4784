"""The listening sockets of a process tree, as the kernel tells, and what they answer to somebody without credentials.
"""
import os
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

LISTEN = "0A"
TIMEOUT_S = 8  # what is no HTTP may wait for more of a frame; that is no answer


@dataclass(frozen=True)
class Listener:
    pid: int
    kind: str  # tcp, udp or unix
    address: str  # 127.0.0.1, or a path
    port: int = 0


def tree(pid: int) -> list[int]:
    """The process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int((entry / "stat").read_text().rpartition(")")[2].split()[1]),
                                    []).append(int(entry.name))
            except OSError:
                continue  # it ended

    def below(of: int) -> list[int]:
        return [of, *(found for child in children.get(of, []) for found in below(child))]
    return below(pid)


def _address(text: str) -> tuple[str, int]:
    """As /proc/net writes it: words in the machine's order."""
    host, port = text.split(":")
    raw = b"".join(bytes.fromhex(host[i:i + 8])[::-1] for i in range(0, len(host), 8))
    if len(raw) == 16 and raw[:12] == bytes(10) + b"\xff\xff":
        raw = raw[12:]  # IPv4 in IPv6
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw), int(port, 16)


def _by_inode() -> dict[str, tuple[str, str, int]]:
    found = {}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            connected = fields[2].rpartition(":")[2] != "0000"
            if fields[3] == LISTEN or table.startswith("udp") and not connected:
                found[fields[9]] = (table[:3], *_address(fields[1]))
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[3], 16) & 0x10000 and len(fields) > 7:  # __SO_ACCEPTCON
            found[fields[6]] = ("unix", fields[7], 0)
    return found


def listeners(pid: int) -> set[Listener]:
    """Of the process and all below it."""
    known, found = _by_inode(), set()
    for each in tree(pid):
        found |= {
            Listener(each, *known[name[8:-1]]) for name in _open_files(each)
            if name.startswith("socket:[") and name[8:-1] in known
        }
    return found


def _open_files(pid: int) -> list[str]:
    """What its descriptors are; without those that it closes meanwhile."""
    names = []
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []  # it ended
    for link in links:
        try:
            names.append(os.readlink(link))
        except OSError:
            continue
    return names


def http(port: int, path: str, context: ssl.SSLContext | None = None, method: str = "GET", body: bytes = b"") -> int:
    """Status of a request without credentials; 0 when what answers is no HTTP, or nothing does."""
    request = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\nConnection:"
        " close\r\n\r\n".encode()
        + body
    )
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as plain:
            channel = context.wrap_socket(plain, server_hostname="127.0.0.1") if context else plain
            channel.sendall(request)
            answer = b""
            while b"\r\n" not in answer and (more := channel.recv(4096)):
                answer += more
    except OSError:  # a TLS alert, a connection that was closed
        return 0
    words = answer.split(b" ", 2)
    return int(words[1]) if words[0].startswith(b"HTTP/1") and len(words) > 1 else 0


def anyone() -> ssl.SSLContext:
    """TLS of somebody who has no certificate and asks for none to be genuine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
