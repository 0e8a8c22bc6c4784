-- A share may be above the capacity: the contract's comment says why.
ALTER TABLE rewrite MODIFY COLUMN `share_kbps` UInt32 COMMENT 'The flow\'s share of it; shares are weighted by airtime, so that one may be above the capacity [kbit/s]' CODEC(ZSTD(1));
