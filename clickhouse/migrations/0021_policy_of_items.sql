-- Items and predictions of several policies. Those of before are of rwnd-fair.
ALTER TABLE item ADD COLUMN IF NOT EXISTS `policy` LowCardinality(String) DEFAULT 'rwnd-fair' COMMENT 'Policy whose features and label these are' AFTER complete;
ALTER TABLE prediction ADD COLUMN IF NOT EXISTS `policy` LowCardinality(String) DEFAULT 'rwnd-fair' COMMENT 'Policy whose model predicted' AFTER features_match;
