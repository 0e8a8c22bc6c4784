    `ap_id` LowCardinality(String) COMMENT 'Access point' CODEC(ZSTD(1)),
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the row, the AP\'s clock' CODEC(Delta(8), ZSTD(1)),
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter; counters restart with it' CODEC(ZSTD(1)),
    `batch_seq` UInt64 COMMENT 'Sequence number of the batch that brought the row' CODEC(Delta(8), ZSTD(1)),
    `device` LowCardinality(String) COMMENT 'Interface' CODEC(ZSTD(1)),
    `of_table` UInt8 COMMENT 'Table of the counter: its id, as here' CODEC(ZSTD(1)),
    `of_field` UInt8 COMMENT 'Its column in that table: the number of the field, as here' CODEC(ZSTD(1)),
    `period_us` UInt32 COMMENT 'Shortest time between two of its changes while there was traffic; no finer than it was asked for [us]' CODEC(ZSTD(1))
