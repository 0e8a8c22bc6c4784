"""One TCP connection from a sender to a receiver in other network namespaces, both ends held by this process."""
import ctypes
import errno
import os
import socket
import struct

from .namespace import inside
from .sh import write

SO_RCVBUFFORCE = 33
TCP_INFO, TCP_CONGESTION, TCP_MAXSEG, TCP_NOTSENT_LOWAT = 11, 13, 2, 25
TCP_CLOSE = 7
DATAGRAM_BYTES = 1472
AT_ONCE = 64  # datagrams of a system call, which is what a guest spends its time with
PAYLOAD = memoryview(bytes(range(256)) * 1024)


def tcp_info(sock: socket.socket) -> dict:
    """The sender's own account (struct tcp_info, linux/tcp.h)."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 224)
    word = lambda at: struct.unpack_from("=I", raw, at)[0]
    return {
        "state": raw[0], "peer_scale": raw[6] & 15, "mss": word(16), "retransmits": word(100), "spurious": word(216),
        "data_segs": word(156), "rtt_us": word(68), "cwnd_pkts": word(80),
        "acked_bytes": struct.unpack_from("=Q", raw, 120)[0]
    }


def choose(sock: socket.socket, cc: str | None) -> None:
    """The congestion control of a socket; None leaves it to the system."""
    if cc is not None:
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())


class Listener:
    """Accepts on a free port in a namespace; shared by all connections towards that host."""

    def __init__(self, ns: str, address: str, cc: str | None = None):
        """`cc`: of what it accepts, as for Connection."""
        with inside(ns):
            self.socket = socket.create_server((address, 0), backlog=256)
        choose(self.socket, cc)
        self.socket.setblocking(False)
        self.address = self.socket.getsockname()


class MessageHeader(ctypes.Structure):
    """struct mmsghdr, linux/socket.h."""

    _fields_ = [("name", ctypes.c_void_p), ("name_bytes", ctypes.c_uint32), ("parts", ctypes.c_void_p),
                ("number_of_parts", ctypes.c_size_t), ("control", ctypes.c_void_p),
                ("control_bytes", ctypes.c_size_t), ("flags", ctypes.c_int), ("_", ctypes.c_int),
                ("bytes", ctypes.c_uint32), ("_end", ctypes.c_int)]


class Batch:
    """Sends or receives up to AT_ONCE datagrams of DATAGRAM_BYTES; all are the same bytes, which nobody reads."""

    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self):
        self.bytes = ctypes.create_string_buffer(DATAGRAM_BYTES)
        self.part = (ctypes.c_size_t * 2)(ctypes.addressof(self.bytes), DATAGRAM_BYTES)  # struct iovec
        self.headers = (MessageHeader * AT_ONCE)(*(MessageHeader(parts=ctypes.addressof(self.part), number_of_parts=1)
                                                   for _ in range(AT_ONCE)))

    def send(self, sock: socket.socket, number: int) -> int:
        """How many of them there was room for."""
        return self._done(self.libc.sendmmsg(sock.fileno(), self.headers, number, 0))

    def receive(self, sock: socket.socket) -> int:
        """How many there were; `headers` has their lengths."""
        return self._done(self.libc.recvmmsg(sock.fileno(), self.headers, AT_ONCE, 0, None))

    @staticmethod
    def _done(number: int) -> int:
        if number >= 0:
            return number
        code = ctypes.get_errno()
        if code == errno.EAGAIN:
            return 0
        raise OSError(code, os.strerror(code))


class Sink:
    """Receives UDP datagrams."""

    def __init__(self, ns: str, address: str):
        with inside(ns):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
        self.socket.bind((address, 0))
        self.socket.setblocking(False)
        self.address = self.socket.getsockname()
        self.batch = Batch()

    def take(self) -> int:
        """Bytes of all datagrams that have arrived."""
        taken, got = 0, AT_ONCE
        while got == AT_ONCE:
            got = self.batch.receive(self.socket)
            taken += sum(header.bytes for header in self.batch.headers[:got])
        return taken


class Datagrams:
    """Sends UDP datagrams at rate_bps in 20 ms portions, however slow the air is: with more than it carries the queue
    never empties.
    """

    def __init__(self, ns: str, to: tuple, rate_bps: int, dscp: int = 0):
        self.rate_bps, self.open, self.credit_bytes = rate_bps, True, 0.0
        with inside(ns):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        self.socket.connect(to)
        self.batch = Batch()

    def portion(self, seconds: float) -> None:
        self.credit_bytes = min(self.credit_bytes + self.rate_bps / 8 * seconds, self.rate_bps / 8)

    def write(self) -> bool:
        while self.open and self.credit_bytes >= DATAGRAM_BYTES:
            wanted = min(int(self.credit_bytes // DATAGRAM_BYTES), AT_ONCE)
            sent = self.batch.send(self.socket, wanted)
            self.credit_bytes -= sent * DATAGRAM_BYTES
            if sent < wanted:
                return True
        return False

    def end(self) -> None:
        self.open = False


class Connection:
    """Sends total_bytes (None: until end()), at most rate_bps if it is not 0, in 20 ms portions as an application
    would; or, with bursts, what `burst` allows.
    """

    def __init__(self, ns: str, to: tuple, cc: str | None, mss: int, rate_bps: int, total_bytes: int | None,
                 dscp: int = 0, bursts: bool = False, ecn: bool | None = None):
        """`ecn`: whether it asks for ECN; None: as all of its namespace do."""
        self.rate_bps, self.left, self.credit_bytes, self.open = rate_bps, total_bytes, 0.0, True
        self.limited = bool(rate_bps) or bursts
        with inside(ns):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            if ecn is not None:  # of what the namespace opens from now on: the SYN below is sent at once
                write("/proc/sys/net/ipv4/tcp_ecn", str(int(ecn)))
        self.socket.setblocking(False)
        choose(self.socket, cc)
        self.socket.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 131072)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        if mss:
            self.socket.setsockopt(socket.IPPROTO_TCP, TCP_MAXSEG, mss)
        result = self.socket.connect_ex(to)
        if result not in (0, errno.EINPROGRESS):
            raise OSError(result, f"connect to {to} in {ns}")

    def portion(self, seconds: float) -> None:
        """Time has passed: a rate-limited sender may write that much more, at most a second's worth."""
        if self.rate_bps:
            self.credit_bytes = min(self.credit_bytes + self.rate_bps / 8 * seconds, self.rate_bps / 8)

    def burst(self, size_bytes: int) -> None:
        """Allow that much more, unless the burst before was not written whole: who watches a film asks for a segment
        when the last one is there.
        """
        if self.credit_bytes < 1:
            self.credit_bytes += size_bytes

    def write(self) -> bool:
        """Write what may be written; False where the sender has to wait for credit or is finished."""
        while self.open:
            limit = len(PAYLOAD)
            if self.limited:
                limit = min(limit, int(self.credit_bytes))
            if self.left is not None:
                limit = min(limit, self.left)
            if limit <= 0:
                if self.left == 0:
                    self.end()
                return False
            try:
                sent = self.socket.send(PAYLOAD[:limit])
            except BlockingIOError:
                return True
            except OSError:
                self.open = False
                return False
            self.credit_bytes -= sent
            if self.left is not None:
                self.left -= sent
            if sent < limit:
                return True
        return False

    def end(self) -> None:
        """No more data; the socket stays until the end of the run, for its figures."""
        if self.open:
            self.open = False
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass
