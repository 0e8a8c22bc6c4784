-- Columns as schema/ has them: rollout steps.
ALTER TABLE rollout MODIFY COLUMN `step` Enum8('started' = 1, 'soaking' = 2, 'expanded' = 3, 'completed' = 4, 'aborted' = 5, 'superseded' = 6, 'held' = 7, 'widened' = 8, 'approved' = 9, 'stalled' = 10) COMMENT 'Step; held - it waits for an approval; widened - the next step of its plan; stalled - no progress within its deadline';
