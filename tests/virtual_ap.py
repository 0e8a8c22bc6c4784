"""An access point that is made up: batches of all three topics with the contract's reference codec, in real time, and a
count of their rows as they are made. TCP flows run down through it, lose segments in its queue and repeat them, so that
labels have something to say.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

from confluent_kafka import Producer
from ledger import differences, kafka_ledger
from oal_schema import mac
from oal_schema.codec import Batch, contract, encode

TOPICS = ("ap.samples.v1", "ap.packets.v1", "ap.events.v1")
MSS = 1448


class VirtualAp:
    """Makes the batches of one AP, one interval after the other. `ledger[(table, boot_id, seq)]` counts their rows."""

    def __init__(self, ap_id: str, seed: int, stations: int = 3, packets_per_batch: int = 120):
        self.ap_id, self.random = ap_id, random.Random(seed)
        self.stations, self.packets = stations, packets_per_batch
        self.boot_id = self.random.getrandbits(63)
        self.seq = 0
        settings = contract().settings
        self.tick_us, self.ticks = settings["tick_us"], settings["batch_ticks"]
        self.ledger: Counter = Counter()
        self.instants: list[tuple[int, int]] = []  # [start, end) of each batch, µs
        self.state: dict[tuple[str, tuple], dict] = {}
        self.next_byte = [1000 * (i + 1) for i in range(stations)]
        self.lost: list[list[int]] = [[] for _ in range(stations)]
        self.flows = [{
            "flow_id": seed << 32 | i + 1, "client_addr": bytes([10, 0, 0,
                                                                 10 + i]), "server_addr": bytes([192, 0, 2, 1]),
            "client_port": 40000 + i, "server_port": 443, "protocol": 6, "station_mac": self._mac(i)
        } for i in range(stations)]
        for i in range(stations):
            self._entity("station", mac=self._mac(i), interval_ticks=1, signal_dbm=-50 - i, signal_avg_dbm=-50 - i,
                         tx_bitrate_kbps=72200)
            self._entity("station_ac", mac=self._mac(i), ac=2)
            self._entity("flow", flow=i, direction=0, rtt_down_us=9000)
        self._entity("channel", frequency_mhz=2412, width_mhz=20, noise_dbm=-92)
        self._entity("queue", device=1, handle=0x10000, parent=0xFFFFFFFF, kind=2)
        self._entity("beacon", bssid=0x0A0000000001, frequency_mhz=2412, signal_dbm=-70)

    @staticmethod
    def _mac(station: int) -> int:
        return 0x020000000100 + station

    @staticmethod
    def _row(table: str, **values) -> dict:
        return {"absent": 0} | {c.name: 0 for c in contract().table(table).columns} | values

    def _entity(self, table: str, **values) -> None:
        row = self._row(table, **values)
        self.state[table, tuple(row[c.name] for c in contract().table(table).columns if c.kind == "KEY")] = row

    def interval(self, t0_us: int) -> list[tuple[int, bytes]]:
        """The batches of the interval that begins at t0_us: (topic, record)."""
        tables: list[dict[str, list[dict]]] = [{}, {}, {}]
        for (name, _), row in self.state.items():
            table = contract().table(name)
            rows = tables[table.topic].setdefault(name, [])
            for tick in range(self.ticks):
                changed = self._step(table, row) if tick else False
                if tick == 0 or changed:
                    rows.append(row | {"tick": tick})
        drops = self._packets(tables[1])
        if drops:
            tables[1]["drop_event"] = [
                self._row("drop_event", cause=3, device=1, queue=0x10000, tick=self.ticks - 1, count=drops)
            ]
        tables[2]["health"] = [self._row("health", tick=0)] if self.seq % 4 == 0 else []
        out = []
        for topic in range(3):
            header = {
                "ap_id": self.ap_id, "site": "lab", "boot_id": self.boot_id, "seq": self.seq, "t0_us": t0_us,
                "tick_us": self.tick_us, "ticks": self.ticks, "schema_revision": contract().settings["schema_revision"],
                "clock_state": 1, "names": ["wlan0", "eth0", "mac80211"]
            }
            out.append((topic, encode(Batch(topic, header, tables[topic], self.flows if topic == 1 else []))))
            for name, rows in tables[topic].items():
                if rows:
                    self.ledger[name, self.boot_id, self.seq] += len(rows)
            self.ledger["batch", self.boot_id, self.seq] += 1
        self.instants.append((t0_us, t0_us + self.ticks * self.tick_us))
        self.seq += 1
        return out

    def _step(self, table, row: dict) -> bool:
        """Move some columns on; whether a column changed that makes a row."""
        changed = False
        for c in table.columns:
            if c.kind in ("COUNTER", "GAUGE") and self.random.random() < 0.02:
                low, high = c.range
                before = row[c.name]
                row[c.name] = (before + self.random.randint(1, 2000)) % (high + 1) if c.kind == "COUNTER" else min(
                    max(before + self.random.randint(-2, 2), low), high)
                changed |= c.change and row[c.name] != before
        return changed

    def _packets(self, tables: dict[str, list[dict]]) -> int:
        """Downlink segments, some of them lost behind the AP and repeated in a later batch, and their ACKs. Returns the
        queue's drops.
        """
        drops, rows = 0, []
        span = self.ticks * self.tick_us
        for flow in range(self.stations):
            times = sorted(self.random.sample(range(span), self.packets // self.stations))
            again, self.lost[flow] = self.lost[flow], []
            for t in times:
                if again:
                    seq = again.pop(0)
                else:
                    seq, self.next_byte[flow] = self.next_byte[flow], (self.next_byte[flow] + MSS) % (1 << 32)
                    if self.random.random() < 0.03:
                        self.lost[flow].append(seq)
                        drops += 1
                rows.append(
                    self._row("packet", flow=flow, direction=0, t_us=t, seq=seq, payload_bytes=MSS, flags=16,
                              window_raw=500, ack=1))
            self.lost[flow] += again
            rows += [
                self._row("packet", flow=flow, direction=1, t_us=t, seq=1, ack=self.next_byte[flow], flags=16,
                          window_raw=2000) for t in times[::2]
            ]
        tables["packet"] = rows
        return drops


def mac_masters(platform) -> dict[int, bytes]:
    """The platform's master keys by key_id."""
    return mac.read_masters(platform.state.mac_masters)


class VirtualFleet:
    """Several virtual APs that write to Kafka as AP `ap_id`s with their own certificates' rights, in real time, from a
    thread.
    """

    def __init__(self, platform, count: int = 3, seed: int = 1, **ap):
        self.aps = [VirtualAp(f"vap-{seed + i}", seed + i, **ap) for i in range(count)]
        self.ap_ids = [ap.ap_id for ap in self.aps]
        self.period_s = self.aps[0].ticks * self.aps[0].tick_us / 1e6
        # The newest records wait in memory while Kafka is away; none is given up within the time of a test.
        self.producer = Producer(
            platform.kafka.ap(self.aps[0].ap_id, plays=count) | {
                "enable.idempotence": True, "compression.type": "lz4", "linger.ms": 20, "log_level": 2,
                "message.timeout.ms": 900_000, "queue.buffering.max.messages": 1_000_000
            })
        masters = mac_masters(platform)
        self.key_id = max(masters)
        self.keys = {ap.ap_id: mac.ap_key(masters[self.key_id], ap.ap_id, "lab") for ap in self.aps}
        self.failed: list[str] = []
        self.acknowledged = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> "VirtualFleet":
        self._thread.start()
        return self

    def _run(self) -> None:
        period = self.period_s
        start = time.time()
        n = 0
        while not self._stop.is_set():
            t0_us = int((start + n * period) * 1e6)
            # A batch can only be sent once its time is over.
            if self._stop.wait(max(0.0, start + (n + 1) * period - time.time())):
                return
            for ap in self.aps:
                for topic, record in ap.interval(t0_us):
                    self.producer.produce(TOPICS[topic], key=ap.ap_id, value=record,
                                          headers=self.headers(ap.ap_id, topic, record), on_delivery=self._delivered)
            self.producer.poll(0)
            n += 1

    def headers(self, ap_id: str, topic: int, record: bytes) -> list[tuple[str, bytes]]:
        return [(mac.HEADER, mac.header(self.key_id, self.keys[ap_id], TOPICS[topic], record))]

    def _delivered(self, error, _message) -> None:
        if error:
            self.failed.append(str(error))
        else:
            self.acknowledged += 1

    def stop(self) -> None:
        """Stop making batches and wait until Kafka has acknowledged all of them."""
        self._stop.set()
        self._thread.join()
        left = self.producer.flush(180)
        assert not left and not self.failed, f"{left} records unsent, {len(self.failed)} refused: {self.failed[:1]}"

    def abandon(self) -> None:
        """Stop making batches, whatever became of them."""
        self._stop.set()
        self._thread.join()

    def made(self) -> int:
        """Intervals made so far, of all APs."""
        return sum(ap.seq for ap in self.aps)

    def begin_us(self, ap_id: str) -> int:
        return self._ap(ap_id).instants[0][0]

    def end_us(self, ap_id: str) -> int:
        return self._ap(ap_id).instants[-1][1]

    def _ap(self, ap_id: str) -> VirtualAp:
        return self.aps[self.ap_ids.index(ap_id)]

    def rows_made(self) -> Counter:
        """Rows made, by (table, ap_id, boot_id, seq)."""
        return Counter({(table, ap.ap_id, boot, seq): n for ap in self.aps
                        for (table, boot, seq), n in ap.ledger.items()})

    def ledger(self, platform) -> Counter:
        """Rows made, by (table, ap_id, boot_id, seq), after a look whether Kafka holds just these."""
        made = self.rows_made()
        wrong = differences(made, kafka_ledger(platform, self.ap_ids))
        assert not wrong, f"Kafka does not hold what was made; by table: (made, in Kafka, lost, too many): {wrong}"
        return made
