"""TCP flows between the server and the stations: one iperf3 pair per entry of the scenario, started and stopped at its times.

The sender's congestion control is set with iperf3 -C. A flow entry may hold several parallel connections.
"""
import json
import subprocess

from .namespace import inside
from .net import address
from .sh import start


class Flow:
    def __init__(self, number: int, spec: dict, station: dict, ap: int):
        self.spec, self.station, self.ap = spec, station, ap
        self.port = 5201 + number
        self.server_ns = f"server{ap}"
        self.client: subprocess.Popen | None = None
        self.server: subprocess.Popen | None = None
        self.log = f"/run/lab/flow{number}.json"
        self.down = spec["direction"] == "down"

    def listen(self) -> None:
        """The receiver runs iperf3 -s; it stays up so that a flow can restart."""
        ns = self.station["ns"] if self.down else self.server_ns
        self.server = start(["iperf3", "-s", "-p", str(self.port)], f"/run/lab/flow{self.port}.server.log", ns)

    def begin(self) -> None:
        host = address(self.ap, self.station["host"]) if self.down else address(self.ap, 1)
        ns = self.server_ns if self.down else self.station["ns"]
        spec = self.spec
        words = ["iperf3", "-c", host, "-p", str(self.port), "-J", "-P", str(spec["parallel"]), "-C", spec["cc"],
                 "-i", "0", "-t", str(max(1, round(spec["stop_s"] - spec["start_s"]))), "--connect-timeout", "5000"]
        if spec["rate_mbps"]:
            words += ["-b", f"{spec['rate_mbps']}M"]
        if spec["mss"]:
            words += ["-M", str(spec["mss"])]
        self.client = start(words, self.log, ns)

    def end(self) -> None:
        for process in (self.client, self.server):
            if process and process.poll() is None:
                process.terminate()

    def result(self) -> dict:
        """Sender's retransmissions and bytes, as iperf3 reports them; error where it did not get that far."""
        out = {"station": self.spec["station"], "direction": self.spec["direction"], "cc": self.spec["cc"],
               "parallel": self.spec["parallel"]}
        try:
            with open(self.log) as f:
                sent = json.load(f)
            total = sent["end"]
            out.update(bytes_sent=total["sum_sent"]["bytes"], bytes_received=total["sum_received"]["bytes"],
                       retransmits=total["sum_sent"].get("retransmits", 0), mbps=round(total["sum_received"]["bits_per_second"] / 1e6, 3))
        except (OSError, ValueError, KeyError) as error:
            out["error"] = f"iperf3 gave no result: {error!r}"
        return out


class TcpCounters:
    """Segments that a namespace's senders sent and sent again: the kernel's SNMP counters, by a file opened in that namespace."""

    def __init__(self, ns: str):
        with inside(ns):
            self.file = open("/proc/thread-self/net/snmp")

    def read(self) -> dict:
        self.file.seek(0)
        names, values = [line.split()[1:] for line in self.file if line.startswith("Tcp:")]
        tcp = dict(zip(names, map(int, values)))
        return {"out_segs": tcp["OutSegs"], "retrans_segs": tcp["RetransSegs"]}
