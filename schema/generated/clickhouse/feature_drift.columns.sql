    `ts` DateTime64(6, 'UTC') COMMENT 'Time of the look, the model registry\'s clock; it sees the 24 h before',
    `model` LowCardinality(String) COMMENT 'Registered model',
    `version` UInt32 COMMENT 'Its version, champion then',
    `ap_id` LowCardinality(String) COMMENT 'Access point; empty: all that the version is for, together',
    `feature` LowCardinality(String) COMMENT 'Feature of its program',
    `psi` Float32 COMMENT 'Population stability index over tenths of the training items and a bin of missing values; below 0.1 the same, above 0.25 another population',
    `items` UInt32 COMMENT 'Complete items that were compared'
