"""The ground truth of a run: the kernel's counters once a second and their sums, independent of the exporter."""
import json
import threading
import time

from .flows import TcpCounters
from .losses import Losses

SUMMED = ("tx_packets", "tx_retries", "tx_failed", "msdu_failed", "txq_drops", "txq_overlimit", "qdisc_drops",
          "wlan_tx_dropped", "airtime_us")


class Truth:
    """Samples on its own thread. Station counters start again when a station rejoins, so increases are summed, not
    differences.
    """

    def __init__(self, counters, server_ns: str, station_ns: list[str], losses: Losses, device: str):
        """losses: the guest's log; device: the AP's radio in it."""
        self.counters, self.losses, self.device = counters, losses, device
        self.server, self.stations = TcpCounters(server_ns), [TcpCounters(ns) for ns in station_ns]
        self.seconds: list[dict] = []
        self.sum = dict.fromkeys(SUMMED, 0)
        self.last_rows: dict = {}
        self.by_station: dict[str, dict] = {}
        self.stop = threading.Event()
        self.start_s = time.monotonic()
        self.tcp_first = self.tcp()
        losses.follow(device, time.time_ns())
        self.first = self.last = self.read()
        self.thread = threading.Thread(target=self.loop, daemon=True)  # a run that fails ends all the same
        self.thread.start()

    def tcp(self) -> dict:
        """Server's senders make the downlink, the stations' the uplink."""
        up = [station.read() for station in self.stations]
        return {
            "down": self.server.read(), "up": {key: sum(c[key] for c in up) for key in ("out_segs", "retrans_segs")}
        }

    def read(self) -> dict:
        now = self.counters.read()
        rows = {mac: row for mac, row in now["stations"].items()}
        rows["wlan"] = {"qdisc_drops": now["total"]["qdisc_drops"], "wlan_tx_dropped": now["total"]["wlan_tx_dropped"]}
        if self.last_rows:
            for key, row in rows.items():
                before = self.last_rows.get(key, {})
                for name in SUMMED:
                    if name in row:
                        gain = row[name] - before.get(name, 0)
                        self.sum[name] += gain if gain >= 0 else row[name]
                        own = self.by_station.setdefault(key, {})
                        own[name] = own.get(name, 0) + (gain if gain >= 0 else row[name])
        self.last_rows.update(rows)
        return now

    def loop(self) -> None:
        number = 0
        while not self.stop.wait(max(0.0, self.start_s + number + 1 - time.monotonic())):
            number += 1
            self.sample()

    def sample(self) -> None:
        self.last = self.read()
        tcp = self.tcp()
        self.seconds.append({"t_s": round(time.monotonic() - self.start_s, 3), "realtime_us": time.time_ns() // 1000,
                             **self.sum, "survey": self.last["survey"],
                             "down_retrans_segs": tcp["down"]["retrans_segs"] - self.tcp_first["down"]["retrans_segs"],
                             "down_out_segs": tcp["down"]["out_segs"] - self.tcp_first["down"]["out_segs"],
                             "up_retrans_segs": tcp["up"]["retrans_segs"] - self.tcp_first["up"]["retrans_segs"],
                             "up_out_segs": tcp["up"]["out_segs"] - self.tcp_first["up"]["out_segs"]})

    def finish(self, path: str, flows: list[dict], extra: dict) -> None:
        self.stop.set()
        self.thread.join()
        self.sample()
        queue = self.sum["txq_drops"] + self.sum["wlan_tx_dropped"] + self.sum["qdisc_drops"]
        out = {
            **extra, "queue_drops": queue, "mac_failures": self.sum["msdu_failed"],
            "losses": self.losses.count(self.device),
            "down_retrans_segs": self.seconds[-1]["down_retrans_segs"],
            "up_retrans_segs": self.seconds[-1]["up_retrans_segs"], "down_out_segs": self.seconds[-1]["down_out_segs"],
            "start": self.first, "end": self.last, "increase": self.sum, "stations": self.by_station, "flows": flows,
            "seconds": self.seconds
        }
        with open(path, "w") as f:
            json.dump(out, f, indent=1)
