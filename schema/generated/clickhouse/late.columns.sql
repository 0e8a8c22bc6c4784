    `ap_id` LowCardinality(String) COMMENT 'Access point',
    `site` LowCardinality(String) COMMENT 'Site of the access point',
    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the batch\'s first tick',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `boot_id` UInt64 COMMENT 'Incarnation of the exporter',
    `seq` UInt64 COMMENT 'Sequence number',
    `late_us` Int64 COMMENT 'How far behind what labels and features had reached of its access point the batch ended, in the access point\'s time [µs]',
    `rows` UInt32 COMMENT 'Rows in the batch'
