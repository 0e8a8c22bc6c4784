    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the batch that showed it',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `kind` Enum8('missing' = 1, 'duplicate' = 2, 'reordered' = 3, 'reboot' = 4) COMMENT 'missing - batches that never came before this one; duplicate - seen before, dropped; reordered - came after a later one, used; reboot - new boot_id',
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter',
    `from_seq` UInt64 COMMENT 'First sequence number concerned',
    `to_seq` UInt64 COMMENT 'Last sequence number concerned',
    `batches` UInt64 COMMENT 'Number of batches concerned'
