-- Columns as schema/ has them: marks.
ALTER TABLE action MODIFY COLUMN `kind` UInt8 DEFAULT 1 COMMENT 'What is done: policy.actions (1 rwnd: the receive window in ACKs is lowered; 2 mark: packets with ECT get CE)' CODEC(ZSTD(1));
ALTER TABLE action MODIFY COLUMN `value` UInt64 COMMENT 'What is in force from here on, in the action\'s own unit (rwnd: the window that ACKs carry at most, bytes; mark: 1 packets with ECT(1), 2 with ECT(0), 3 both); 0: it was given up' CODEC(ZSTD(1));
