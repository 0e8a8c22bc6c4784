package oal.stream.process;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.stream.codec.BatchHeader;

/**
 * The time that one topic of an access point covers without a hole, and the last part of it that was not fully sampled.
 */
final class Coverage {
    /** Consecutive batches may be this many ticks apart, since clocks are slewed. */
    private static final int SLACK_TICKS = 8;
    /**
     * A shorter hole in sampling changes no label and hardly a feature: packets come from a ring without ticks, and
     * counters catch up. Half a decision interval, so that a hole of a whole interval counts even if two batches share
     * it.
     */
    private static final long HOLE_US = oal.schema.Settings.DECISION_INTERVAL_US / 2;

    /** First byte of the state. */
    private static final int UNKNOWN = 0;
    private static final int KNOWN = 1;
    private static final int KNOWN_FROM_FIRST = 2;

    private boolean known;
    /** Is no batch missing before {@code fromUs}: did the incarnation begin there, or was the clock set? */
    private boolean fromFirst;
    private long bootId;
    private long seq;
    private long fromUs;
    private long untilUs;
    private long missedFromUs;
    private long missedUntilUs;

    void clear() {
        known = false;
    }

    /** Is there nothing between the last batch and this one? */
    boolean continues(BatchHeader h) {
        return known && h.bootId == bootId && h.seq == seq + 1 && Math.abs(h.t0Us - untilUs) <= SLACK_TICKS * h.tickUs;
    }

    /** Does the batch begin before the topic's last one ended? */
    boolean wentBack(BatchHeader h) {
        return known && h.bootId == bootId && h.t0Us < untilUs - SLACK_TICKS * h.tickUs;
    }

    /** The batch continues what came: called before instants up to its start are evaluated. */
    void extend(BatchHeader h) {
        seq = h.seq;
        untilUs = h.endUs();
    }

    /** There is a hole before the batch: called after instants up to its start were evaluated. */
    void restart(BatchHeader h) {
        // Where no batch is missing, the AP's clock was set, and the AP's own features had the same.
        fromFirst = h.seq == 0 || known && h.bootId == bootId && h.seq == seq + 1;
        known = true;
        bootId = h.bootId;
        fromUs = h.t0Us;
        missedFromUs = missedUntilUs = 0;
        extend(h);
    }

    /** Note the ticks that the batch itself missed: called after instants up to its start were evaluated. */
    void note(BatchHeader h) {
        long from;
        long until;
        if (h.ringDrops > 0 || h.rowsDropped > 0) {
            from = h.t0Us;
            until = h.endUs();
        } else if (h.missedLongestTicks * h.tickUs >= HOLE_US) {
            from = h.t0Us + h.missedFromTick * h.tickUs;
            until = h.t0Us + h.missedUntilTick * h.tickUs;
        } else {
            return;
        }
        // The last hole may reach into the current interval: then both count as one.
        missedFromUs = missedUntilUs > h.t0Us - oal.schema.Settings.DECISION_INTERVAL_US ? Math.min(missedFromUs, from)
                : from;
        missedUntilUs = Math.max(missedUntilUs, until);
    }

    /** Did everything of [from, until) come, and was it sampled without a hole that matters? */
    boolean covers(long from, long until) {
        return known && fromUs <= from && untilUs >= until && !(missedFromUs < until && missedUntilUs > from);
    }

    /** Did every batch of [from, until) come that there was? */
    boolean came(long from, long until) {
        return known && (fromUs <= from || fromFirst) && untilUs >= until;
    }

    /** Is no batch missing before the present ones, which began at {@code from} or later? */
    boolean began(long from) {
        return known && fromFirst && fromUs >= from;
    }

    long untilUs() {
        return untilUs;
    }

    void write(DataOutput out) throws IOException {
        out.writeByte(known ? fromFirst ? KNOWN_FROM_FIRST : KNOWN : UNKNOWN);
        for (long v : new long[] {bootId, seq, fromUs, untilUs, missedFromUs, missedUntilUs}) out.writeLong(v);
    }

    void read(DataInput in) throws IOException {
        int what = in.readUnsignedByte();
        known = what != UNKNOWN;
        fromFirst = what == KNOWN_FROM_FIRST;
        bootId = in.readLong();
        seq = in.readLong();
        fromUs = in.readLong();
        untilUs = in.readLong();
        missedFromUs = in.readLong();
        missedUntilUs = in.readLong();
    }
}
