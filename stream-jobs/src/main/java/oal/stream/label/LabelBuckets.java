package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.schema.Settings;
import oal.stream.state.StateSettings;

/**
 * What happened in each decision interval [n·interval, (n+1)·interval): the buckets that label windows are sums of. The
 * ring holds one window and as much as a batch may be ahead of it.
 */
final class LabelBuckets {
    static final long INTERVAL_US = Settings.DECISION_INTERVAL_US;
    private static final int RING = 128;
    /** Rows may lie this far ahead of the instant closed next, µs. */
    static final long AHEAD_US = RING * INTERVAL_US - Settings.LABEL_WINDOW_US - Settings.LOSS_WAIT_US - INTERVAL_US;
    /** Times of drops are kept for so many buckets after their window was closed. */
    private static final int KEPT = 40;

    private static final int OFFERED_PKTS = 0;
    private static final int OFFERED_BYTES = 1;
    private static final int LOST_PKTS = 2;
    private static final int LOST_BYTES = 3;
    private static final int MAC_LOST = 4;
    private static final int QUEUE_DROPS = 5;
    private static final int DROPPED = 6;
    private static final int DROPPED_AIR = 7;
    private static final int DROPPED_ELSEWHERE = 8;
    private static final int FIELDS = 9;
    /** Fields in the state of earlier versions, which knows no drops. */
    private static final int FIELDS_AT_REPETITION = 6;

    /** Buckets in a label window, and from its end until it is closed. */
    private final int window;
    private final int wait;
    private final long[][] sum = new long[FIELDS][RING];
    /** First and last drop of each bucket, µs; 0: none. */
    private final long[] firstDrop = new long[RING];
    private final long[] lastDrop = new long[RING];
    /** Bucket to be closed next; earlier rows count into it. */
    private long next;
    /** First bucket since the last restart; earlier rows belong to a bucket that was not fully seen. */
    private long first;
    /** Bit i: the bucket that ended i intervals before the last instant is incomplete. */
    private long incomplete;

    LabelBuckets(int window, int wait) {
        this.window = window;
        this.wait = wait;
        if (window + wait > Long.SIZE) throw new IllegalArgumentException("label window and loss wait are too long");
    }

    /** Start afresh with the bucket that begins at {@code us}, a multiple of the interval. */
    void restart(long us) {
        for (long[] s : sum) java.util.Arrays.fill(s, 0);
        java.util.Arrays.fill(firstDrop, 0);
        java.util.Arrays.fill(lastDrop, 0);
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

    /** Packets of a loss, into the bucket of their drop; of no use once that is closed. */
    void dropped(Loss loss) {
        long bucket = bucketOf(loss.droppedUs);
        if (bucket < next) return;
        boolean congestion = loss.congestion();
        add(congestion ? DROPPED : loss.cause == Loss.AIR ? DROPPED_AIR : DROPPED_ELSEWHERE, bucket, loss.pkts);
        if (!congestion) return;
        int at = (int) (bucket & (RING - 1));
        if (firstDrop[at] == 0 || loss.droppedUs < firstDrop[at]) firstDrop[at] = loss.droppedUs;
        if (loss.droppedUs > lastDrop[at]) lastDrop[at] = loss.droppedUs;
    }

    /** Time of the last congestion drop in [from, until), both instants whose buckets are closed; 0: none. */
    long lastDropUs(long fromUs, long untilUs) {
        for (long b = untilUs / INTERVAL_US - 1; b >= Math.max(first, fromUs / INTERVAL_US); b--) {
            if (lastDrop[(int) (b & (RING - 1))] != 0) return lastDrop[(int) (b & (RING - 1))];
        }
        return 0;
    }

    /** Time of the first one. */
    long firstDropUs(long fromUs, long untilUs) {
        for (long b = Math.max(first, fromUs / INTERVAL_US); b < untilUs / INTERVAL_US; b++) {
            if (firstDrop[(int) (b & (RING - 1))] != 0) return firstDrop[(int) (b & (RING - 1))];
        }
        return 0;
    }

    private void add(int field, long bucket, long n) {
        if (bucket < first) return;
        long b = Math.max(bucket, next);
        sum[field][(int) (b & (RING - 1))] += n;
    }

    /**
     * The instant {@code us} has come: close the bucket that ended {@code wait} buckets before it, and fill {@code out}
     * with the window that ends with that bucket. The window is complete if all is until the instant, since what was
     * dropped in it is seen by then.
     */
    void close(long us, boolean complete, LabelWindow out) {
        incomplete = incomplete << 1 | (complete ? 0 : 1);
        long closing = us / INTERVAL_US - 1 - wait;
        if (closing < next) { // a bucket before the first whole one
            out.clear(us - (window + wait) * INTERVAL_US);
            return;
        }
        next = closing + 1;
        long from = closing - window + 1;
        out.startUs = from * INTERVAL_US;
        out.whole = from >= first;
        out.complete = out.whole && (incomplete & mask()) == 0;
        out.offeredPkts = total(OFFERED_PKTS, from, closing);
        out.offeredBytes = total(OFFERED_BYTES, from, closing);
        out.lostPkts = total(LOST_PKTS, from, closing);
        out.lostBytes = total(LOST_BYTES, from, closing);
        out.macLostPkts = total(MAC_LOST, from, closing);
        out.queueDropPkts = total(QUEUE_DROPS, from, closing);
        out.congestionLostPkts = total(DROPPED, from, closing);
        out.airLostPkts = total(DROPPED_AIR, from, closing);
        out.elsewhereLostPkts = total(DROPPED_ELSEWHERE, from, closing);
        for (long[] s : sum) s[(int) (from & (RING - 1))] = 0;
        int old = (int) (closing - KEPT & (RING - 1));
        firstDrop[old] = lastDrop[old] = 0;
    }

    private long mask() {
        return window + wait == Long.SIZE ? -1 : (1L << window + wait) - 1;
    }

    private long total(int field, long from, long to) {
        long n = 0;
        for (long b = Math.max(from, first); b <= to; b++) n += sum[field][(int) (b & (RING - 1))];
        return n;
    }

    /** The first bucket from {@code bucket} on after all that have rows. */
    private long afterRows(long bucket) {
        long after = bucket;
        for (long b = bucket; b < bucket + RING / 2; b++) {
            for (long[] s : sum) if (s[(int) (b & (RING - 1))] != 0) after = b + 1;
        }
        return after;
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
        for (int i = 0; i < RING; i++) {
            if (firstDrop[i] == 0) continue;
            out.writeByte(i);
            out.writeLong(firstDrop[i]);
            out.writeLong(lastDrop[i]);
        }
        out.writeByte(RING);
    }

    /**
     * Reads what {@link #write} wrote with other settings. Of a window of another length or wait the buckets that were
     * closed are not all there, or would stand in the way, and those of earlier versions know no drops: windows begin
     * with the next bucket, as after a restart, and rows ahead of it are kept.
     */
    void read(DataInput in, StateSettings was) throws IOException {
        next = in.readLong();
        first = in.readLong();
        incomplete = in.readLong();
        int fields = was.stampsDrops() ? FIELDS : FIELDS_AT_REPETITION;
        for (int f = 0; f < FIELDS; f++) {
            long[] s = sum[f];
            java.util.Arrays.fill(s, 0);
            if (f >= fields) continue;
            int used = in.readUnsignedShort();
            for (int i = 0; i < used; i++) {
                int at = in.readUnsignedShort();
                s[at] = in.readLong();
            }
        }
        for (int i = was.stampsDrops() ? in.readUnsignedByte() : RING; i < RING; i = in.readUnsignedByte()) {
            firstDrop[i] = in.readLong();
            lastDrop[i] = in.readLong();
        }
        if (was.window() == window && was.lossWait() == wait && was.stampsDrops()) return;
        long seen = next + was.lossWait();
        for (long b = next - was.window(); b < seen; b++) for (long[] s : sum) s[(int) (b & (RING - 1))] = 0;
        next = seen;
        if (!was.stampsDrops()) next = afterRows(seen); // their losses are not known
        first = Math.max(first, next);
    }
}
