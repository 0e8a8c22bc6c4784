"""The TCP flows of a scenario, all in one thread: senders and receivers are sockets in the namespaces of server and
stations.
"""
import select
import socket
import threading
import time

from .connection import TCP_CLOSE, Connection, Datagrams, Listener, Sink, tcp_info
from .namespace import inside
from .net import address
from .session import LOOK_S, Looks

PORTION_S = 0.02


class Flow:
    """One entry of the scenario: parallel connections from start to stop, or a new one every every_s of size_kb each,
    or the arrivals of a session; every period again."""

    def __init__(self, spec: dict, station: dict, ap: int, period_s: float, looked: bool = False):
        """`looked`: the senders of long downloads are looked at, which is kept until the end."""
        self.spec, self.period_s = spec, period_s
        down, server_ns = spec["direction"] == "down", f"server{ap}"
        self.from_ns, to_ns = (server_ns, station["ns"]) if down else (station["ns"], server_ns)
        host = address(ap, station["host"] if down else 1)
        self.listener = Sink(to_ns, host) if spec["udp"] else Listener(to_ns, host, spec["peer_cc"])
        self.connections: list[Connection] = []
        self.next_s, self.stop_s = spec["start_s"], spec["stop_s"]
        self.burst_s = spec["start_s"]  # of the next burst
        self.arrivals = list(spec["arrivals"] or [])  # that are still to come in this period
        self.deadlines: list[tuple[float, Connection]] = []  # connections of a session that end before they are through
        self.received_bytes = 0
        #: Of connections that send all that they can: when each began, its looks, when the last one was.
        self.sessions: list[dict] = []
        self.looked = looked and spec["direction"] == "down" and not any(
            spec[name] for name in ("udp", "size_kb", "burst_kb", "rate_mbps")) and spec["arrivals"] is None
        self.total = {"connections": 0, "retransmits": 0, "spurious": 0, "data_segs": 0, "acked_bytes": 0}

    def due(self, now_s: float) -> list[Connection]:
        """Connections that start now."""
        spec, new = self.spec, []
        if spec["arrivals"] is not None:
            return self.arrived(now_s)
        if now_s < self.next_s or now_s >= self.stop_s:
            return new
        self.next_s = self.next_s + spec["every_s"] if spec["every_s"] and not spec["burst_kb"] else float("inf")
        for _ in range(spec["parallel"]):
            if spec["udp"]:
                new.append(
                    Datagrams(self.from_ns, self.listener.address, round(spec["rate_mbps"] * 1e6), spec["dscp"]))
                continue
            new.append(
                Connection(self.from_ns, self.listener.address, spec["cc"], spec["mss"], round(spec["rate_mbps"] * 1e6),
                           spec["size_kb"] * 1000 or None, spec["dscp"], bool(spec["burst_kb"]), spec["ecn"]))
            if self.looked:
                self.sessions.append({"of": new[-1], "begin_s": now_s, "last_s": now_s, "looks": Looks()})
        self.connections += new
        return new

    def look(self, now_s: float) -> None:
        """At each sender that still has something to send."""
        for session in self.sessions:
            if session["of"].open:
                session["looks"].look(session["of"].socket)
                session["last_s"] = now_s

    def arrived(self, now_s: float) -> list[Connection]:
        """Connections of a session that start now; the scenario's times are those of its first period."""
        spec, new = self.spec, []
        past_s = self.stop_s - spec["stop_s"]
        while self.arrivals and now_s - past_s >= self.arrivals[0]["start_s"]:
            arrival = self.arrivals.pop(0)
            for _ in range(arrival["parallel"]):
                new.append(
                    Connection(self.from_ns, self.listener.address, spec["cc"], spec["mss"],
                               round(arrival["rate_mbps"] * 1e6), arrival["size_kb"] * 1000 or None, spec["dscp"]))
                self.deadlines.append((arrival["stop_s"] + past_s, new[-1]))
        self.connections += new
        return new

    def bursting(self, now_s: float) -> list[Connection]:
        """Connections that are allowed another burst now."""
        if not self.spec["burst_kb"] or now_s < self.burst_s:
            return []
        self.burst_s += self.spec["every_s"]
        there = [c for c in self.connections if c.open]
        for c in there:
            c.burst(self.spec["burst_kb"] * 1000)
        return there

    def ended(self, now_s: float) -> list[Connection]:
        """Connections whose session is over."""
        late = [c for stop_s, c in self.deadlines if now_s >= stop_s]
        self.deadlines = [(stop_s, c) for stop_s, c in self.deadlines if now_s < stop_s and c.open]
        return late

    def over(self, now_s: float) -> list[Connection]:
        """Past its end: the connections to end now; then it waits for the next period."""
        if now_s < self.stop_s:
            return self.ended(now_s)
        ended = list(self.connections)
        self.arrivals, self.deadlines = list(self.spec["arrivals"] or []), []
        cycle = self.stop_s - self.spec["stop_s"] + self.period_s
        self.next_s, self.stop_s = self.spec["start_s"] + cycle, self.spec["stop_s"] + cycle
        self.burst_s = self.next_s
        return ended

    def settle(self, closed: bool = False) -> None:
        """Add the figures of the connections that have ended (closed: of those that the kernel is through with) to the
        totals and close them.
        """
        for c in [
                c for c in self.connections if not c.open and not (closed and tcp_info(c.socket)["state"] != TCP_CLOSE)
        ]:
            self.total["connections"] += 1
            if not self.spec["udp"]:
                for key, value in tcp_info(c.socket).items():
                    if key in self.total:
                        self.total[key] += value
            c.socket.close()
            self.connections.remove(c)

    def result(self) -> dict:
        self.settle()
        return {
            "listener": list(self.listener.address), "size_kb": self.spec["size_kb"],
            "burst_kb": self.spec["burst_kb"], "station": self.spec["station"], "direction": self.spec["direction"],
            "cc": self.spec["cc"], "ecn": self.spec["ecn"], "received_bytes": self.received_bytes,
            "sessions": [s["looks"].figures(s["last_s"] - s["begin_s"]) for s in self.sessions], **self.total
        }


class Traffic:
    """Runs the flows from begin() to end()."""

    def __init__(self, flows: list[Flow]):
        self.flows, self.poll = flows, select.epoll()
        self.senders: dict[int, Connection] = {}
        self.receivers: dict[int, tuple[socket.socket, Flow]] = {}
        self.sinks = [flow for flow in flows if flow.spec["udp"]]  # read at ticks, or every datagram would be a turn
        for flow in flows:
            if not flow.spec["udp"]:
                self.poll.register(flow.listener.socket.fileno(), select.EPOLLIN)
        self.listeners = {flow.listener.socket.fileno(): flow for flow in flows if not flow.spec["udp"]}
        self.ending = False  # no connection is opened any more
        self.stopping = threading.Event()
        self.failure: Exception | None = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def begin(self) -> None:
        self.start_s = time.monotonic()
        self.thread.start()

    def run(self) -> None:
        try:
            self.loop()
        except Exception as error:  # reported by end(): a thread's own exit is silent
            self.failure = error

    def loop(self) -> None:
        buffer = bytearray(1 << 18)
        last_s = time.monotonic()
        next_s = look_s = last_s
        while not self.stopping.is_set():
            now = time.monotonic()
            if now >= next_s:
                self.tick(now - self.start_s, now - last_s)
                last_s = now
                next_s = now + PORTION_S
                if now >= look_s:
                    look_s += LOOK_S
                    for flow in self.flows:
                        flow.look(now - self.start_s)
            for fd, _ in self.poll.poll(max(0.0, next_s - now)):
                if fd in self.senders:
                    self.send(fd)
                elif fd in self.receivers:
                    self.receive(fd, buffer)
                elif fd in self.listeners:
                    sock, _ = self.listeners[fd].listener.socket.accept()
                    sock.setblocking(False)
                    self.receivers[sock.fileno()] = (sock, self.listeners[fd])
                    self.poll.register(sock.fileno(), select.EPOLLIN)

    def tick(self, now_s: float, passed_s: float) -> None:
        """Every 20 ms: starts, stops, and portions for rate-limited senders."""
        for flow in self.flows:
            for connection in flow.over(now_s):
                connection.end()
                self.forget(connection.socket.fileno())
            new = [] if self.ending else flow.due(now_s)
            if new and flow.spec["arrivals"] is not None:
                flow.settle(closed=True)  # a long session opens more connections than a process may hold
            elif new and not flow.spec["every_s"]:
                flow.settle()  # those of the period before: long finished, their figures final
            for connection in new:
                self.senders[connection.socket.fileno()] = connection
                self.poll.register(connection.socket.fileno(), select.EPOLLOUT)
            for connection in flow.bursting(now_s):
                if connection.socket.fileno() in self.senders:
                    self.poll.modify(connection.socket.fileno(), select.EPOLLOUT)
        for fd, connection in self.senders.items():
            if connection.rate_bps and connection.open:
                connection.portion(passed_s)
                self.poll.modify(fd, select.EPOLLOUT)
        for flow in self.sinks:
            flow.received_bytes += flow.listener.take()

    def send(self, fd: int) -> None:
        if self.senders[fd].write():
            return
        if self.senders[fd].open:
            self.poll.modify(fd, 0)  # until it has credit again
        else:
            self.forget(fd)

    def forget(self, fd: int) -> None:
        """A finished sender would report its hang-up again and again; its socket stays open for its figures."""
        if self.senders.pop(fd, None):
            self.poll.unregister(fd)

    def receive(self, fd: int, buffer: bytearray) -> None:
        sock, flow = self.receivers[fd]
        try:
            got = sock.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            got = 0
        flow.received_bytes += got
        if not got:
            self.poll.unregister(fd)
            del self.receivers[fd]
            sock.close()

    def end(self) -> list[dict]:
        """Stop; each flow's figures."""
        self.ending = True
        for flow in self.flows:
            flow.stop_s = 0  # the thread ends them at its next tick
        time.sleep(0.5)  # what is under way arrives, so that the counters of both ends agree
        self.stopping.set()
        self.thread.join()
        if self.failure:
            raise SystemExit(f"guest: the flows stopped: {self.failure!r}")
        return [flow.result() for flow in self.flows]


class TcpCounters:
    """Segments that a namespace's senders sent and sent again: the kernel's SNMP counters, by a file opened in that
    namespace.
    """

    def __init__(self, ns: str):
        with inside(ns):
            self.file = open("/proc/thread-self/net/snmp")

    def read(self) -> dict:
        self.file.seek(0)
        names, values = [line.split()[1:] for line in self.file if line.startswith("Tcp:")]
        tcp = dict(zip(names, map(int, values)))
        return {"out_segs": tcp["OutSegs"], "retrans_segs": tcp["RetransSegs"]}
