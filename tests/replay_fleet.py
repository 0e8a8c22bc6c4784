"""The real exporter that replays the committed captures as several access points, and its own count of what it made."""

from __future__ import annotations

import secrets
from collections import Counter

from ledger import kafka_ledger
from oal_local import demo
from oal_local.exporter import Exporter

APS = 3
SITE = "test"


class ReplayFleet:
    """As VirtualFleet, with batches of the real exporter. The count at the source is `ap-exporter count` of its own
    capture.
    """

    period_s = 0.252

    def __init__(self, platform):
        mark = secrets.token_hex(3)  # another run on the same platform has other names
        sections = [(kind, name, options | {"ap_prefix": f"{options['ap_prefix']}-{mark}"})
                    for kind, name, options in demo.replay_sections(APS)]
        self.ap_ids = demo.replayed_aps(sections)
        kind, name, options = demo.kafka_section(platform, f"replay-{mark}", SITE, self.ap_ids)
        # Several APs in one process, and nothing may be let go: a count of what was kept would prove little. Nor when
        # it stops: what waits since Kafka was away takes a while to be sent on a busy machine.
        kafka = kind, name, options | {"buffer_kb": 262_144, "flush_ms": 60_000}
        self.exporter = Exporter(platform.state.dir / "exporter", f"replay-{mark}", f"replay-{mark}", SITE,
                                 [*sections, kafka])

    def start(self) -> "ReplayFleet":
        self.exporter.start()
        return self

    def made(self) -> int:
        """Intervals made so far, of all APs."""
        return sum(ap["batches"]["ap.samples.v1"] for ap in self.exporter.count()["aps"].values())

    def stop(self) -> None:
        code = self.exporter.stop(120)
        assert code == 0, f"the exporter ended with {code}; see {self.exporter.log}"
        self._count = self.exporter.count()

    def abandon(self) -> None:
        if self.exporter.process is not None and self.exporter.process.poll() is None:
            self.exporter.process.kill()
            self.exporter.process.wait()

    def begin_us(self, _ap_id: str) -> int:
        return self._count["first_us"]

    def end_us(self, _ap_id: str) -> int:
        return self._count["last_us"]

    def ledger(self, platform) -> Counter:
        """Rows by (table, ap_id, boot_id, seq) as Kafka holds them, after a look whether it holds what the exporter
        counted.
        """
        held = kafka_ledger(platform, self.ap_ids)
        assert set(self._count["aps"]) == set(self.ap_ids), f"the exporter played {set(self._count['aps'])}"
        for ap_id, counted in self._count["aps"].items():
            expected = {table: n
                        for table, n in counted["rows"].items() if n} | {"batch": sum(counted["batches"].values())}
            found: Counter = Counter()
            for (table, ap, _, _), n in held.items():
                if ap == ap_id:
                    found[table] += n
            assert expected == dict(found), f"{ap_id}: the exporter counted {expected}, Kafka holds {dict(found)}"
        return held
