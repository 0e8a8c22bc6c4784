"""Downloads over QUIC (lab/evaluate/quic): a server at each access point's wired end, a client at the station for each
flow. Both are programs of their own, and what they leave is read at the end.
"""
import json
import signal
import subprocess
import time

from .net import address
from .sh import start

CC = "quic"  # of a flow: not one of the kernel's
PORT = 443
READY_S, END_S = 60, 30


class Quic:
    """The QUIC flows of one access point, from begin() to end()."""

    def __init__(self, plan: dict, ap: int, name: str, specs: list[dict], stations: dict[str, dict], host: str):
        """`specs`: flows, in the order in which end() gives their figures; `stations`: by name."""
        self.ap, self.specs, self.stations = ap, specs, stations
        self.program, self.stem = host + plan["quic"], f"/run/lab/{name}.quic"
        self.server_ns, self.at = f"server{ap}", f"{address(ap, 1)}:{PORT}"
        self.clients: list[subprocess.Popen] = []
        self.server = self._start(self.server_ns, "server", "serve", "-listen", self.at)
        end = time.monotonic() + READY_S
        while "ready" not in open(f"{self.stem}.server.log").read():
            if self.server.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"guest: the QUIC server does not start: {self._log('server')}")
            time.sleep(0.01)

    def _start(self, ns: str, what: str, *words: str) -> subprocess.Popen:
        # One processor is all that there is. Segments are made by the program, so that each packet of the wire is seen.
        return start(["env", "GOMAXPROCS=1", "QUIC_GO_DISABLE_GSO=true", self.program, *words, "-certificate",
                      f"{self.stem}.pem", "-out", f"{self.stem}.{what}.json"], f"{self.stem}.{what}.log", ns)

    def _log(self, what: str) -> str:
        with open(f"{self.stem}.{what}.log") as f:
            return f.read().strip()[-1000:]

    def begin(self) -> None:
        now_ns = str(time.time_ns())
        for n, spec in enumerate(self.specs):
            station = self.stations[spec["station"]]
            self.clients.append(self._start(
                station["ns"], f"client{n}", "get", "-from", self.at, "-bind", address(self.ap, station["host"]),
                "-begin", now_ns, "-start", str(spec["start_s"]), "-stop", str(spec["stop_s"]), "-parallel",
                str(spec["parallel"]), "-every", str(spec["every_s"]), "-size", str(spec["size_kb"] * 1000), "-burst",
                str(spec["burst_kb"] * 1000)))

    def _end(self, process: subprocess.Popen, what: str) -> dict:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        if process.wait(timeout=END_S):
            raise SystemExit(f"guest: the QUIC {what} ended with {process.returncode}: {self._log(what)}")
        with open(f"{self.stem}.{what}.json") as f:
            return json.load(f)

    def end(self) -> list[dict]:
        """Stop; each flow's figures: as a TCP flow's, the address of the server, and every transfer as its client saw
        it.
        """
        seen = [self._end(process, f"client{n}") for n, process in enumerate(self.clients)]
        by_client = {c["client"]: c for c in self._end(self.server, "server")["connections"] or []}
        return [self._figures(spec, one["transfers"] or [], by_client) for spec, one in zip(self.specs, seen)]

    def _figures(self, spec: dict, transfers: list[dict], by_client: dict[str, dict]) -> dict:
        host = address(self.ap, self.stations[spec["station"]]["host"])
        received = sum(t["bytes"] for t in transfers)
        told = [by_client[name] for name in {f"{host}:{t['port']}" for t in transfers} if name in by_client]
        return {
            "listener": [host, 0], "size_kb": spec["size_kb"], "burst_kb": spec["burst_kb"],
            "station": spec["station"], "direction": spec["direction"], "cc": spec["cc"], "ecn": None,
            "received_bytes": received, "connections": len(told), "spurious": 0,
            "retransmits": sum(c["packets_lost"] for c in told), "data_segs": sum(c["packets_sent"] for c in told),
            "acked_bytes": received, "quic": {"server": [address(self.ap, 1), PORT], "transfers": transfers}
        }
