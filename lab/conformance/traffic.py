"""TCP connections between a station and the server, both ends in this process, moved by one loop that also keeps
appointments.
"""
import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable

from guest.connection import PAYLOAD, TCP_CONGESTION, TCP_MAXSEG, TCP_NOTSENT_LOWAT
from guest.namespace import inside

FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


class Flow:
    """Data goes down from the server to the client, without end; `up_bytes_per_s` also goes up. The client opens it
    (`server_opens`: the server). `upload`: data goes up alone.
    """

    def __init__(self, ns: tuple[str, str], address: tuple[str, str], ports: tuple[int, int], *, family: int = 4,
                 mss: int = 0, cc: str = "cubic", rcvbuf: int = 0, server_opens: bool = False,
                 upload: bool = False):
        (client_ns, server_ns), (client_ip, server_ip) = ns, address
        self.ports, self.address, self.family = ports, address, family
        self.reading, self.sending, self.sending_up, self.heard_end = True, not upload, upload, False
        self.received_bytes = 0
        here, there = ((server_ns, server_ip, ports[1]),
                       (client_ns, client_ip, ports[0])) if server_opens else ((client_ns, client_ip, ports[0]),
                                                                               (server_ns, server_ip, ports[1]))
        ends = []
        for name in (there[0], here[0]):
            with inside(name):
                ends.append(socket.socket(FAMILY[family], socket.SOCK_STREAM))
            ends[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            ends[-1].setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
            if mss:
                ends[-1].setsockopt(socket.IPPROTO_TCP, TCP_MAXSEG, mss)
        listener, opener = ends
        if rcvbuf:
            (opener if not server_opens else listener).setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        listener.bind(there[1:])
        listener.listen()
        opener.bind(here[1:])
        opener.settimeout(10)
        opener.connect(there[1:])
        accepted, _ = listener.accept()
        listener.close()
        self.client, self.server = (accepted, opener) if server_opens else (opener, accepted)
        for end in (self.client, self.server):
            end.setblocking(False)
        self.server.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 131072)

    def interest(self) -> list[tuple[socket.socket, int]]:
        down = (select.EPOLLOUT if self.sending else 0) | (0 if self.heard_end else select.EPOLLIN)
        return [(self.server, down),
                (self.client, (select.EPOLLIN if self.reading else 0) | (select.EPOLLOUT if self.sending_up else 0))]

    def write(self, end: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            end.send(PAYLOAD)

    def read(self, end: socket.socket, buffer: bytearray) -> None:
        """At the far side's end: a client closes, so that the connection ends; the server goes on sending to a client
        that is half closed.
        """
        try:
            got = end.recv_into(buffer)
        except BlockingIOError:
            return
        if end is self.client:
            self.received_bytes += got
            if not got:
                self.close(end)
        else:
            self.heard_end = not got

    def close(self, end: socket.socket) -> None:
        end.close()
        if end is self.server:
            self.sending = False
        else:
            self.reading = self.sending_up = False

    def pause(self) -> None:
        """The application at the client stops reading, so that its own window closes."""
        self.reading = False

    def resume(self) -> None:
        self.reading = True

    def half_close(self) -> None:
        """The client has nothing more to say, and goes on listening."""
        self.sending_up = False
        self.client.shutdown(socket.SHUT_WR)

    def stop(self) -> None:
        """The server ends the flow in order."""
        self.sending = self.sending_up = False
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """The client gives up at once: RST."""
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close(self.client)


class Loop:
    """Moves all flows and runs what is due, for as long as it is told to."""

    def __init__(self):
        self.flows: list[Flow] = []
        self.every: list[list] = []  # [next time, interval, what]
        self.buffer = bytearray(1 << 18)
        self.poll = select.epoll()
        self.polled: dict[int, tuple[Flow, socket.socket, int]] = {}  # by file: whose end it is, what is waited for

    def repeat(self, interval_s: float, what: Callable[[], None]) -> list:
        """Again and again, until cancel()."""
        entry = [time.monotonic() + interval_s, interval_s, what]
        self.every.append(entry)
        return entry

    def cancel(self, entry: list) -> None:
        if entry in self.every:
            self.every.remove(entry)

    def run(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < end_s:
            for entry in self.every:
                if now_s >= entry[0]:
                    entry[0] = now_s + entry[1]
                    entry[2]()
            self.turn(min([end_s, *(entry[0] for entry in self.every)]) - time.monotonic())

    def until(self, condition: Callable[[], bool], what: str, patience_s: float = 20, every_s: float = 0.01) -> None:
        give_up_s = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > give_up_s:
                raise TimeoutError(f"not within {patience_s:.0f} s: {what}")
            self.run(every_s)

    def interests(self) -> None:
        """Wait for what the flows want now. A system call is what a guest spends its time with, so only what changed.
        """
        wanted = {end.fileno(): (flow, end, events) for flow in self.flows for end, events in flow.interest()
                  if end.fileno() >= 0 and events}
        if wanted == self.polled:
            return
        for fd, (_, end, _) in self.polled.items():
            if end.fileno() == fd and (fd not in wanted or wanted[fd][1] is not end):
                self.poll.unregister(fd)
        for fd, (_, end, events) in wanted.items():
            held = self.polled.get(fd)
            if held is None or held[1] is not end:  # a closed one's number may have been given to another
                self.poll.register(fd, events)
            elif held[2] != events:
                self.poll.modify(fd, events)
        self.polled = wanted

    def turn(self, timeout_s: float) -> None:
        self.interests()
        for fd, events in self.poll.poll(max(0.0, timeout_s)):
            flow, end, _ = self.polled[fd]
            try:
                if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                    flow.read(end, self.buffer)
                elif events & select.EPOLLOUT:
                    flow.write(end)
            except (BrokenPipeError, ConnectionResetError):
                flow.close(end)
