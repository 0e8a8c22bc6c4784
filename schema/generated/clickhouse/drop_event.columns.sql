    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `cause` UInt8 COMMENT 'What counted it: 1 station queue (CoDel), 2 station queue (over limit), 3 qdisc or interface queue, 4 MAC failure' CODEC(ZSTD(1)),
    `device` LowCardinality(String) COMMENT 'Interface' CODEC(ZSTD(1)),
    `mac` UInt64 COMMENT 'Station; 0 for causes that are not a station\'s' CODEC(ZSTD(1)),
    `queue` UInt32 COMMENT 'Access category for causes 1 and 2, qdisc handle for 3, otherwise 0' CODEC(ZSTD(1)),
    `count` UInt32 COMMENT 'By how much [pkt]' CODEC(ZSTD(1))
