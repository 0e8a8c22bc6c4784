    `ts` DateTime64(3, 'UTC') COMMENT 'Time the broker took the record',
    `topic` LowCardinality(String) COMMENT 'Kafka topic',
    `key` String COMMENT 'Key of the record',
    `reason` Enum8('oversized' = 1, 'truncated' = 2, 'malformed' = 3, 'value_range' = 4, 'unknown_revision' = 5, 'key_mismatch' = 6, 'time_range' = 7, 'unsigned' = 8, 'unknown_key' = 9, 'forged' = 10, 'revoked' = 11) COMMENT 'Why it was refused',
    `detail` String COMMENT 'What exactly was wrong',
    `kafka_partition` UInt16 COMMENT 'Partition',
    `kafka_offset` UInt64 COMMENT 'Offset',
    `bytes` UInt32 COMMENT 'Size of the record',
    `payload` String COMMENT 'Empty: the record as it came stands in Kafka\'s dead-letter topic; of rows of before it is here'
