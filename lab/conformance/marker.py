"""`ap-exporter mark` under the suite's hand, and numbered datagrams from the server to the client with each ECN field.
Every command is an event with its time.
"""
import json
import socket
import subprocess

from guest.namespace import inside
from guest.sh import run

from .network import STATION_NS
from .rewriter import Refused, now_us

PORT = 6000
INTERVAL_S = 0.004  # between datagrams; each fourth has the same ECN field
TOS, TCLASS = (socket.IPPROTO_IP, socket.IP_TOS), (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)


class Marker:
    """`by`: its backend, the tc program at the station's port or the bridge."""

    def __init__(self, p, by: str, kill_file: str = ""):
        self.p = p
        # /sys shows the namespace that it was mounted in: a process of the station's own looks
        self.station = run(f"cat /sys/class/net/{p.network.client_port}/address", STATION_NS).strip()
        self.log = open(f"{p.folder}/{p.case.name}.mark.log", "wb")
        at = {"backend": "bpf", "interface": p.network.port} if by == "bpf" else p.switch.options(p.network.port)
        options = [word for name, value in {**at, "kill-file": kill_file}.items()
                   for word in (f"--{name.replace('_', '-')}", value)]
        self.process = subprocess.Popen([p.binary, "mark", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, bufsize=1)
        if not self.answer("the start")["stats"]["ready"]:
            raise Refused("marks are not ready")

    def answer(self, to: str) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise Refused(f"ap-exporter mark ended on {to!r}: {open(self.log.name).read()[-500:]}")
        return json.loads(line)

    def ask(self, line: str) -> dict:
        self.process.stdin.write(line + "\n")
        return self.answer(line)

    def command(self, what: str, *words: int, ok: bool = True, **more) -> None:
        begin = now_us()
        answer = self.ask(" ".join([what, self.station, *map(str, words)]))
        self.p.events.append({"what": f"mark {what}", "t_us": begin, "end_us": now_us(), "ok": answer["ok"], **more})
        if answer["ok"] != ok:
            raise Refused(f"{what} {words}: {answer}")

    def set(self, marks: int, ttl_ms: int, interval_us: int = 100_000, ok: bool = True) -> None:
        words = [marks, ttl_ms] + ([interval_us] if marks & 2 else [])
        self.command("set", *words, ok=ok, marks=marks, ttl_us=ttl_ms * 1000, interval_us=interval_us)

    def release(self) -> None:
        self.command("release")

    def stats(self) -> dict:
        return self.ask("stats")["stats"]

    def note(self, what: str, begin_us: int) -> None:
        """Something happened that has ended marks by now."""
        self.p.events.append({"what": f"mark {what}", "t_us": begin_us, "end_us": now_us(), "ok": True})

    def kill(self) -> None:
        """SIGKILL: nothing is cleaned up."""
        begin = now_us()
        self.process.kill()
        self.process.wait()
        self.p.events.append({"what": "mark killed", "t_us": begin, "end_us": now_us(), "ok": True})

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(timeout=20)
        self.log.close()


class Datagrams:
    """To the client, over IPv4 and IPv6 in turns, with each ECN field in turns."""

    def __init__(self, p):
        self.number = 0
        with inside(p.server_ns):
            self.sockets = [(socket.socket(family, socket.SOCK_DGRAM), option, p.network.addresses(version)[0])
                            for version, family, option in ((4, socket.AF_INET, TOS), (6, socket.AF_INET6, TCLASS))]
        self.entry, self.loop = p.loop.repeat(INTERVAL_S, self.send), p.loop

    def send(self) -> None:
        end, option, to = self.sockets[self.number // 4 % 2]
        end.setsockopt(*option, self.number % 4)
        end.sendto(b"oal %d" % self.number, (to, PORT))
        self.number += 1

    def close(self) -> None:
        self.loop.cancel(self.entry)
        for end, _, _ in self.sockets:
            end.close()
