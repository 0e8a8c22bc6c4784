-- What policies do, row by row: table `action` of schema revision 3. Column list: schema/generated/clickhouse/action.columns.sql.

-- Read by AP and time: what was done, by which policy, and why. A few rows a second of an AP that acts, none of one that does not.
CREATE TABLE IF NOT EXISTS action
(
    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `policy` LowCardinality(String) DEFAULT 'rwnd-fair' COMMENT 'Policy that decided it: its folder in policies/' CODEC(ZSTD(1)),
    `kind` UInt8 DEFAULT 1 COMMENT 'What is done: policy.actions (1 rwnd: the receive window in ACKs is lowered)' CODEC(ZSTD(1)),
    `subject` UInt64 COMMENT 'What it is done to: a flow\'s id as in FlowDictionary, without the highest bit; a station\'s MAC; 0: the access point' CODEC(ZSTD(1)),
    `backend` UInt8 COMMENT 'What carries it out: policy.rewrite_backends (1 shadow: nothing was written)' CODEC(ZSTD(1)),
    `mac` UInt64 COMMENT 'Station that carries the flow; 0 while unknown' CODEC(ZSTD(1)),
    `bundle` UInt64 COMMENT 'Bundle whose policy says so: first 8 bytes of its hash, big-endian, without the highest bit' CODEC(ZSTD(1)),
    `class` UInt8 COMMENT 'Predicted class at that moment: 0 Good … 3 Bad; 255: none' CODEC(ZSTD(1)),
    `reason` UInt8 COMMENT 'Why: policy.rewrite_reasons' CODEC(ZSTD(1)),
    `value` UInt64 COMMENT 'What is in force from here on, in the action\'s own unit (rwnd: the window that ACKs carry at most, bytes); 0: it was given up' CODEC(ZSTD(1)),
    `capacity_kbps` UInt32 COMMENT 'Capacity C(t) of the access point that was divided [kbit/s]' CODEC(ZSTD(1)),
    `share_kbps` UInt32 COMMENT 'The flow\'s share of it; shares are weighted by airtime, so that one may be above the capacity [kbit/s]' CODEC(ZSTD(1)),
    `rate_kbps` UInt32 COMMENT 'The flow\'s delivery rate [kbit/s]' CODEC(ZSTD(1)),
    `cwnd_bytes` UInt32 COMMENT 'The sender\'s congestion window as estimated [B]' CODEC(ZSTD(1)),
    `queue_us` UInt32 COMMENT 'Standing queue at that moment [us]' CODEC(ZSTD(1)),
    `inserted_at` DateTime64(3, 'UTC') MATERIALIZED now64(3) COMMENT 'Time ClickHouse took the row, for latency; not part of the contract' CODEC(Delta(8), ZSTD(1)),
    INDEX ts_range ts TYPE minmax
)
ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, default_compression_codec = 'ZSTD(1)'
COMMENT 'A change of what a policy does to one subject, or of the reason for it';
