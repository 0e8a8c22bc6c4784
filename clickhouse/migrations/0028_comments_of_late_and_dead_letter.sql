-- Two comments that were wrong: a late batch is measured in its access point's time, and refused records stand in Kafka.
ALTER TABLE late MODIFY COLUMN `late_us` Int64 COMMENT 'How far behind what labels and features had reached of its access point the batch ended, in the access point\'s time [µs]';
ALTER TABLE dead_letter MODIFY COLUMN `payload` String COMMENT 'Empty: the record as it came stands in Kafka\'s dead-letter topic; of rows of before it is here';
ALTER TABLE dead_letter MODIFY COMMENT 'Records that could not be decoded, with the reason. Whole they stand in Kafka\'s dead-letter topic alone';
