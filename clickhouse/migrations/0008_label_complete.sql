-- What makes a label window incomplete, as schema/stream_tables.yaml says it now: a few missed ticks do not.
ALTER TABLE label COMMENT COLUMN complete '0 when a batch of the window is missing, the capture ring dropped packets, or nothing was sampled for half a decision interval';
