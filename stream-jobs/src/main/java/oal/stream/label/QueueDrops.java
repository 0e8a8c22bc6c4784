package oal.stream.label;

import oal.schema.Tables;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.TableRows;

/**
 * Packets that the kernel's own queue counters say were dropped: causes 1 (CoDel), 2 (over limit) and 3 (qdisc) of
 * drop_event.
 */
final class QueueDrops {
    private static final int MAC_FAILURE = 4;

    private QueueDrops() {}

    static void add(BatchDecoder batch, LabelBuckets buckets, long untilUs) {
        TableRows t = batch.table(Tables.DROP_EVENT.id());
        if (t.rows == 0) return;
        long[] ts = t.timesUs(batch.header());
        long[] count = t.column(Tables.DropEvent.COUNT);
        long[] cause = t.column(Tables.DropEvent.CAUSE);
        int at = 0;
        for (int run = 0; run < t.runs; run++) {
            int end = at + t.runRows[run];
            if (cause[run] >= 1 && cause[run] < MAC_FAILURE) {
                for (int i = at; i < end; i++) {
                    if (ts[i] < untilUs) buckets.queueDrops(buckets.bucketOf(ts[i]), count[i]);
                }
            }
            at = end;
        }
    }
}
