package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.schema.Settings;

/**
 * What happened in each decision interval [n·interval, (n+1)·interval): the buckets that label windows are sums of. The
 * ring holds one window and as much as a batch may be ahead of it.
 */
final class LabelBuckets {
    static final long INTERVAL_US = Settings.DECISION_INTERVAL_US;
    private static final int RING = 128;
    /** Rows may lie this far ahead of the bucket closed next, µs. */
    static final long AHEAD_US = RING * INTERVAL_US - Settings.LABEL_WINDOW_US - INTERVAL_US;

    private static final int OFFERED_PKTS = 0;
    private static final int OFFERED_BYTES = 1;
    private static final int LOST_PKTS = 2;
    private static final int LOST_BYTES = 3;
    private static final int MAC_LOST = 4;
    private static final int QUEUE_DROPS = 5;
    private static final int FIELDS = 6;

    /** Buckets in a label window. */
    private final int window;
    private final long[][] sum = new long[FIELDS][RING];
    /** Bucket to be closed next; earlier rows count into it. */
    private long next;
    /** First bucket since the last restart; earlier rows belong to a bucket that was not fully seen. */
    private long first;
    /** Bit i: bucket {@code next − 1 − i} is incomplete. */
    private long incomplete;

    LabelBuckets(int window) {
        this.window = window;
    }

    /** Start afresh with the bucket that begins at {@code us}, a multiple of the interval. */
    void restart(long us) {
        for (long[] s : sum) java.util.Arrays.fill(s, 0);
        first = next = us / INTERVAL_US;
        incomplete = 0;
    }

    long bucketOf(long us) {
        return us / INTERVAL_US;
    }

    void offered(long bucket, int pkts, int bytes) {
        add(OFFERED_PKTS, bucket, pkts);
        add(OFFERED_BYTES, bucket, bytes);
    }

    void lost(long bucket, int pkts, int bytes) {
        add(LOST_PKTS, bucket, pkts);
        add(LOST_BYTES, bucket, bytes);
    }

    void macLost(long bucket, long pkts) {
        add(MAC_LOST, bucket, pkts);
    }

    void queueDrops(long bucket, long pkts) {
        add(QUEUE_DROPS, bucket, pkts);
    }

    private void add(int field, long bucket, long n) {
        if (bucket < first) return;
        long b = Math.max(bucket, next);
        sum[field][(int) (b & (RING - 1))] += n;
    }

    /** Close the bucket that ends at {@code us} and fill {@code out} with the window that ends there. */
    void close(long us, boolean complete, LabelWindow out) {
        long closing = us / INTERVAL_US - 1;
        if (closing < next) { // the bucket before the first whole one
            out.clear(us - window * INTERVAL_US);
            return;
        }
        incomplete = incomplete << 1 | (complete ? 0 : 1);
        next = closing + 1;
        long from = closing - window + 1;
        out.startUs = from * INTERVAL_US;
        out.whole = from >= first;
        out.complete = out.whole && (incomplete & ((1L << window) - 1)) == 0;
        out.offeredPkts = total(OFFERED_PKTS, from, closing);
        out.offeredBytes = total(OFFERED_BYTES, from, closing);
        out.lostPkts = total(LOST_PKTS, from, closing);
        out.lostBytes = total(LOST_BYTES, from, closing);
        out.macLostPkts = total(MAC_LOST, from, closing);
        out.queueDropPkts = total(QUEUE_DROPS, from, closing);
        for (long[] s : sum) s[(int) (from & (RING - 1))] = 0;
    }

    private long total(int field, long from, long to) {
        long n = 0;
        for (long b = Math.max(from, first); b <= to; b++) n += sum[field][(int) (b & (RING - 1))];
        return n;
    }

    void write(DataOutput out) throws IOException {
        out.writeLong(next);
        out.writeLong(first);
        out.writeLong(incomplete);
        for (long[] s : sum) {
            int used = 0;
            for (long v : s) if (v != 0) used++;
            out.writeShort(used);
            for (int i = 0; i < RING; i++) {
                if (s[i] == 0) continue;
                out.writeShort(i);
                out.writeLong(s[i]);
            }
        }
    }

    /**
     * Reads what {@link #write} wrote with windows of {@code windowWas} buckets. Of a window of another length the
     * buckets that were closed are not all there, or would stand in the way: windows begin with the next bucket, as
     * after a restart, and rows ahead of it are kept.
     */
    void read(DataInput in, int windowWas) throws IOException {
        next = in.readLong();
        first = in.readLong();
        incomplete = in.readLong();
        for (long[] s : sum) {
            java.util.Arrays.fill(s, 0);
            int used = in.readUnsignedShort();
            for (int i = 0; i < used; i++) {
                int at = in.readUnsignedShort();
                s[at] = in.readLong();
            }
        }
        if (windowWas == window) return;
        for (long b = next - windowWas; b < next; b++) for (long[] s : sum) s[(int) (b & (RING - 1))] = 0;
        first = Math.max(first, next);
    }
}
