"""How far the data has come: one figure or two a stage, read from Kafka and ClickHouse, since a moment."""
from oal_local.clickhouse import since
from oal_local.errors import PlatformError

SAMPLE_TABLES = ("station", "station_ac", "channel", "queue", "beacon", "flow", "drop_event", "neighbour_ap",
                 "counter_refresh")
TABLES = (*SAMPLE_TABLES, "packet", "health", "decision", "bundle_status", "action", "control")
TOPICS = ("ap.samples.v1", "ap.packets.v1", "ap.events.v1")


class Stages:
    """Reads the platform. `since_us`: only what was sampled from then on counts (realtime µs)."""

    def __init__(self, platform, since_us: int):
        self.platform, self.since_us = platform, since_us
        self._consumer = None

    def read(self) -> dict:
        """One snapshot of all stages."""
        rows = self.platform.clickhouse.rows
        when = since(self.since_us)
        batch = rows(
            "SELECT uniqExact(ap_id) AS aps, count() AS batches, sum(bytes) AS bytes, sum(rows) AS rows_announced,"
            " sum(ticks_missed) AS ticks_missed, sum(ring_drops) AS ring_drops, sum(rows_dropped) AS rows_dropped,"
            f" uniqExact(ap_id, boot_id, topic, seq) AS distinct_batches FROM oal.batch WHERE {when}"
        )[0]
        tables = {r["t"]: r["n"] for r in rows(" UNION ALL ".join(
            f"SELECT '{t}' AS t, count() AS n FROM oal.{t} WHERE {when}" for t in TABLES))}
        gaps = {
            r["kind"]: r["n"] for r in rows(f"SELECT kind, sum(batches) AS n FROM oal.gap WHERE {when} GROUP BY kind")
        }
        label = rows(
            "SELECT count() AS windows, uniqExact(ap_id, ts) AS distinct_windows, countIf(complete) AS complete,"
            f" countIf(class = 'Bad') AS bad FROM oal.label WHERE {when}")[0]
        item = rows(
            "SELECT count() AS items, uniqExact(ap_id, ts, policy) AS distinct_items, countIf(complete) AS complete"
            f" FROM oal.item WHERE {when}"
        )[0]
        # Windows of 1 s start every 100 ms; those that start on a full second do not overlap.
        loss = rows(
            "SELECT sum(lost_pkts) AS lost, sum(mac_lost_pkts) AS mac, sum(congestion_lost_pkts) AS congestion,"
            f" sum(queue_drop_pkts) AS queue, sum(offered_pkts) AS offered FROM oal.label WHERE {when} AND"
            " toUnixTimestamp64Micro(ts) % 1000000 = 0"
        )[0]
        dropped = rows(
            "SELECT topic, ap_id, min(ts) AS first, count() AS batches, sum(rows_dropped) AS n FROM oal.batch WHERE"
            f" rows_dropped > 0 AND {when} GROUP BY topic, ap_id ORDER BY first"
        ) if batch["rows_dropped"] else []
        late = rows(f"SELECT count() AS n FROM oal.late WHERE {when}")[0]["n"]
        dead = rows(f"SELECT count() AS n FROM oal.dead_letter WHERE {when}")[0]["n"]
        latency = rows(
            "SELECT quantiles(0.5, 0.99)(toUnixTimestamp64Milli(inserted_at) - toUnixTimestamp64Milli(ts)) AS q,"
            f" count() AS n FROM oal.packet WHERE {when}"
        )[0]
        return {
            "aps": batch["aps"],
            "batches": batch["batches"],
            "batches_distinct": batch["distinct_batches"],
            "batch_bytes": batch["bytes"],
            "rows_announced": batch["rows_announced"],
            "tables": tables,
            "rows": sum(tables.values()),
            "samples": sum(tables[t] for t in SAMPLE_TABLES),
            "packets": tables["packet"],
            "ticks_missed": batch["ticks_missed"],
            "ring_drops": batch["ring_drops"],
            "rows_dropped": batch["rows_dropped"],
            "rows_dropped_where": [f"{d['n']} of {d['topic']} of {d['ap_id']}, {d['batches']} batches from {d['first']}"
                                   for d in dropped],
            "gaps_missing": gaps.get("missing", 0),
            "gaps_duplicate": gaps.get("duplicate", 0),
            "gaps_reordered": gaps.get("reordered", 0),
            "late": late,
            "dead_letters": dead,
            "label_windows": label["windows"],
            "labels_distinct": label["distinct_windows"],
            "labels_complete": label["complete"],
            "bad_windows": label["bad"],
            "offered_pkts": loss["offered"],
            "lost_pkts": loss["lost"],
            "mac_lost_pkts": loss["mac"],
            "congestion_lost_pkts": loss["congestion"],
            "queue_drop_pkts": loss["queue"],
            "items": item["items"],
            "items_distinct": item["distinct_items"],
            "items_complete": item["complete"],
            "lag_records": self.lag(),
            "latency_p50_s": latency["q"][0] / 1000 if latency["n"] else None,
            "latency_p99_s": latency["q"][1] / 1000 if latency["n"] else None,
        }

    def lag(self) -> int:
        """Records in the APs' topics that are not queryable rows (or dead letters) yet."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        if self._consumer is None:
            self._consumer = Consumer(
                self.platform.kafka.client("viewer") | {"group.id": "viewer-stages", "enable.auto.commit": False})
        done = {
            (r["topic"], r["p"]): r["o"]
            for r in self.platform.clickhouse.rows(
                "SELECT topic, kafka_partition AS p, max(kafka_offset) + 1 AS o FROM (SELECT topic, kafka_partition,"
                " kafka_offset FROM oal.batch UNION ALL SELECT topic, kafka_partition, kafka_offset FROM"
                " oal.dead_letter) GROUP BY topic, p"
            )
        }
        lag = 0
        try:
            for topic in TOPICS:
                for p in self._consumer.list_topics(topic, timeout=10).topics[topic].partitions:
                    _, high = self._consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)
                    lag += max(0, high - done.get((topic, p), 0))
        except KafkaException as error:
            raise PlatformError(f"asking Kafka for its offsets failed: {error}") from None
        return lag

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def verdict(stages: dict, source: dict, aps: int, let_go: int) -> list[str]:
    """Everything that is wrong with a finished run; empty when every stage moved and nothing was lost.

    `source` is the independent count at the source: {"batches": n, "rows": {table: n}}.
    """
    wrong = []

    def check(ok: bool, text: str) -> None:
        if not ok:
            wrong.append(text)

    check(stages["aps"] == aps, f"{stages['aps']} of {aps} APs arrived")
    check(let_go == 0, f"the exporter let {let_go} batches go")
    check(stages["batches"] == source["batches"], f"{stages['batches']} batches arrived, {source['batches']} were made")
    check(stages["batches"] == stages["batches_distinct"], "a batch is in ClickHouse twice")
    for table in TABLES:
        check(stages["tables"][table] == source["rows"].get(table, 0),
              f"{table}: {stages['tables'][table]} rows arrived, {source['rows'].get(table, 0)} were sent")
    check(stages["packets"] > 0 and stages["samples"] > 0, "no packets or no samples")
    check(stages["label_windows"] > 0 and stages["label_windows"] == stages["labels_distinct"],
          "labelled windows are missing or doubled")
    check(stages["items"] > 0 and stages["items"] == stages["items_distinct"], "training items are missing or doubled")
    for name in ("gaps_missing", "gaps_duplicate", "late", "dead_letters", "rows_dropped", "ring_drops"):
        where = "; ".join(stages.get(f"{name}_where", ()))
        check(stages[name] == 0, f"{name.replace('_', ' ')}: {stages[name]}{where and f' ({where})'}")
    return wrong
