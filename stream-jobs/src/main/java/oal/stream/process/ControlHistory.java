package oal.stream.process;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.BatchHeader;
import oal.stream.codec.TableRows;

/**
 * When policies acted on an access point's traffic, from its events. What they prevented did not come true, so labels
 * of such a time are those of the action too.
 *
 * <p>An action shows when it is set, changed or given up (rows of {@code action}), and each second while any is in
 * force (rows of {@code control}). So of a time in which one was in force, some sign is never further back than the
 * second before; callers get {@link #REACH_US}.
 */
final class ControlHistory {
    /**
     * An action acts on what comes this long after a sign of it: a second until the next sign, and one more in which
     * the queue is still what it made of it. So the window that ends at an item's instant is free of it, too.
     */
    static final long REACH_US = 2_000_000;
    /** Times of action that are remembered apart; more than that are joined, so that too much counts as acted on. */
    static final int MAX_TIMES = 64;
    /** Items never ask for what is so much older than the latest that they asked for: their clock was set back. */
    private static final long KEEP_US = 60_000_000;

    /** Codes of policy.rewrite_backends (schema/generated/reference.md) from here on touch packets. */
    private static final long FIRST_REAL_BACKEND = 2;
    /** Code of mode: enforce. */
    private static final long ENFORCE = 2;

    /** In mode enforce by the last row of {@code control}: then what it did must be waited for. */
    private boolean enforces;
    private boolean heard;
    private long bootId;
    /** End of the last batch of events, µs of the AP's clock. */
    private long heardUs;
    /** Broker's time of the last batch of events, ms. */
    private long heardMs = Long.MIN_VALUE + 1;
    /** First and last sign of each time of action, in order. */
    private final long[] from = new long[MAX_TIMES + 1];
    private final long[] until = new long[MAX_TIMES + 1];
    private int times;

    /** Marks the columns that are read, for {@link BatchDecoder#only}. */
    static void wants(boolean[][] wanted) {
        for (int column : new int[] {Tables.Action.BACKEND, Tables.Action.TICK}) {
            wanted[Tables.ACTION.id()][column] = true;
        }
        for (int column : new int[] {Tables.Rewrite.BACKEND, Tables.Rewrite.TICK}) {
            wanted[Tables.REWRITE.id()][column] = true;
        }
        for (int column : new int[] {Tables.Control.TICK, Tables.Control.MODE, Tables.Control.CLAMPS}) {
            wanted[Tables.CONTROL.id()][column] = true;
        }
    }

    /** Takes a batch of events, in the order of the topic. */
    void add(BatchDecoder events, long kafkaMs) {
        BatchHeader h = events.header();
        heardMs = Math.max(heardMs, kafkaMs);
        boolean back = heard && h.t0Us < heardUs - Settings.DECISION_INTERVAL_US;
        if (back) forgetFrom(h.t0Us); // the clock was set back, or the AP began anew with another
        else if (heard && enforces && h.bootId == bootId && h.t0Us > heardUs + Settings.DECISION_INTERVAL_US) {
            sign(heardUs, h.t0Us); // a batch is missing, which may have had any action
        }
        heard = true;
        bootId = h.bootId;
        heardUs = h.endUs();
        actions(events.table(Tables.ACTION.id()), Tables.Action.BACKEND, h);
        actions(events.table(Tables.REWRITE.id()), Tables.Rewrite.BACKEND, h);
        TableRows control = events.table(Tables.CONTROL.id());
        if (control.rows == 0) return;
        long[] timeUs = control.timesUs(h);
        for (int i = 0; i < control.rows; i++) {
            enforces = control.column(Tables.Control.MODE)[i] == ENFORCE;
            if (enforces && control.column(Tables.Control.CLAMPS)[i] > 0) sign(timeUs[i], h);
        }
    }

    private void actions(TableRows rows, int backend, BatchHeader h) {
        if (rows.rows == 0) return;
        long[] timeUs = rows.timesUs(h);
        int row = 0;
        for (int run = 0; run < rows.runs; run++) {
            int end = row + rows.runRows[run];
            if (rows.column(backend)[run] >= FIRST_REAL_BACKEND) for (int i = row; i < end; i++) sign(timeUs[i], h);
            row = end;
        }
    }

    /** Rows are within their batch; a row that is not counts as at the batch's end. */
    private void sign(long timeUs, BatchHeader h) {
        long at = Math.min(timeUs, h.endUs());
        sign(at, at);
    }

    private void sign(long firstUs, long lastUs) {
        int i = 0;
        while (i < times && until[i] + REACH_US < firstUs) i++;
        int next = i;
        while (next < times && from[next] - REACH_US <= lastUs) next++;
        if (i == next) {
            System.arraycopy(from, i, from, i + 1, times - i);
            System.arraycopy(until, i, until, i + 1, times - i);
            times++;
            from[i] = firstUs;
            until[i] = lastUs;
        } else {
            from[i] = Math.min(from[i], firstUs);
            until[i] = Math.max(until[next - 1], lastUs);
            remove(i + 1, next);
        }
        if (times > MAX_TIMES) {
            until[0] = until[1];
            remove(1, 2);
        }
    }

    private void remove(int first, int next) {
        System.arraycopy(from, next, from, first, times - next);
        System.arraycopy(until, next, until, first, times - next);
        times -= next - first;
    }

    private void forgetFrom(long timeUs) {
        while (times > 0 && from[times - 1] >= timeUs) times--;
        if (times > 0) until[times - 1] = Math.min(until[times - 1], timeUs);
    }

    /** Has all come that the AP sent of the time before? If it is not in mode enforce, there is nothing to wait for. */
    boolean knows(long untilUs) {
        return !enforces || heardUs >= untilUs;
    }

    /** Broker's time, ms, up to which events were read. */
    long heardMs() {
        return heardMs;
    }

    /** Did a policy act on what was sent in [from, until), or may it have? */
    boolean acted(long fromUs, long untilUs) {
        if (!knows(untilUs)) return true;
        for (int i = times - 1; i >= 0 && until[i] + REACH_US >= fromUs; i--) if (from[i] < untilUs) return true;
        return false;
    }

    /** Nobody asks for earlier times any more, but for a clock that is set back a little. */
    void passed(long timeUs) {
        int gone = 0;
        while (gone < times && until[gone] + REACH_US < timeUs - KEEP_US) gone++;
        if (gone > 0) remove(0, gone);
    }

    int size() {
        return times;
    }

    void write(DataOutput out) throws IOException {
        out.writeBoolean(enforces);
        out.writeBoolean(heard);
        for (long v : new long[] {bootId, heardUs, heardMs}) out.writeLong(v);
        out.writeByte(times);
        for (int i = 0; i < times; i++) {
            out.writeLong(from[i]);
            out.writeLong(until[i]);
        }
    }

    void read(DataInput in) throws IOException {
        enforces = in.readBoolean();
        heard = in.readBoolean();
        bootId = in.readLong();
        heardUs = in.readLong();
        heardMs = in.readLong();
        times = in.readUnsignedByte();
        if (times > MAX_TIMES) throw new IOException(times + " times of action; at most " + MAX_TIMES + " are kept");
        for (int i = 0; i < times; i++) {
            from[i] = in.readLong();
            until[i] = in.readLong();
        }
    }
}
