-- What policies do, row by row: table `action` of schema revision 3. It is the table `rewrite` of before under its new name, so that
-- no row is copied; a row of before was of policy rwnd-fair (kind 1). Column list: schema/generated/clickhouse/action.columns.sql.
-- 0020 makes view `rewrite` of it.

RENAME TABLE IF EXISTS rewrite TO action;
ALTER TABLE action RENAME COLUMN IF EXISTS flow_id TO subject;
ALTER TABLE action RENAME COLUMN IF EXISTS window_bytes TO value;
ALTER TABLE action ADD COLUMN IF NOT EXISTS `policy` LowCardinality(String) DEFAULT 'rwnd-fair' COMMENT 'Policy that decided it: its folder in policies/' CODEC(ZSTD(1)) AFTER batch_seq;
ALTER TABLE action ADD COLUMN IF NOT EXISTS `kind` UInt8 DEFAULT 1 COMMENT 'What is done: policy.actions (1 rwnd: the receive window in ACKs is lowered)' CODEC(ZSTD(1)) AFTER policy;
ALTER TABLE action MODIFY COLUMN `subject` UInt64 COMMENT 'What it is done to: a flow\'s id as in FlowDictionary, without the highest bit; a station\'s MAC; 0: the access point' CODEC(ZSTD(1)) AFTER kind;
ALTER TABLE action MODIFY COLUMN `value` UInt64 COMMENT 'What is in force from here on, in the action\'s own unit (rwnd: the window that ACKs carry at most, bytes); 0: it was given up' CODEC(ZSTD(1)) AFTER reason;
ALTER TABLE action MODIFY COMMENT 'A change of what a policy does to one subject, or of the reason for it, and why. Renewals of the same are not rows';
