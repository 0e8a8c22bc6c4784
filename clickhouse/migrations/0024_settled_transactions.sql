-- Kafka transactions that hung and were ended by platform/kafka/transactions.py. Columns are a copy of
-- schema/generated/clickhouse/settled_transaction.columns.sql.

-- Read by time: what was lost, and when? A handful of rows a year.
CREATE TABLE IF NOT EXISTS settled_transaction
(
    `ts` DateTime64(6, 'UTC') COMMENT 'Time it was settled, the watcher\'s clock',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `partition` UInt32 COMMENT 'Partition',
    `transactional_id` String COMMENT 'Its id; empty when no coordinator knows it',
    `producer_id` UInt64 COMMENT 'Producer',
    `producer_epoch` UInt32 COMMENT 'Epoch of the producer',
    `start_offset` UInt64 COMMENT 'Offset of its first record',
    `records` UInt64 COMMENT 'Records that it has in the partition at most',
    `outcome` Enum8('committed' = 1, 'aborted' = 2, 'lost' = 3) COMMENT 'committed, aborted - as its coordinator had decided; lost - aborted because nobody knows what was decided',
    `detail` String COMMENT 'Explanation',
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract'
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (topic, partition, ts)
TTL toDateTime(ts) + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A Kafka transaction that hung - its coordinator had ended it, a partition had not - and what became of it';
