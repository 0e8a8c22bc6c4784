package oal.stream.pipeline;

import oal.stream.pipeline.PartitionEnds.End;

/**
 * How far one partition has been read, in the broker's time. That is the time of the latest record; or, once the
 * broker's word is that there is no later one, the time at which it was asked. Silence alone says nothing: the
 * partition's broker may be away or stand still.
 *
 * <p>No partition counts as read up to less than {@code behind} ago. So a broker that stands still for up to so long
 * makes nothing late that came before it did, its clock may be off by as much, and a partition at its end holds back
 * none that is read.
 */
final class ReadProgress {
    /** While brokers answer, a partition that stays silent for so long is given up, until it speaks again. */
    static final long GIVE_UP_MS = 60_000;
    /** An answer of a broker is news for so long. */
    private static final long NEWS_MS = 10_000;
    /** Longest time between two ticks that counts as silence: in a longer one the job did not read. */
    private static final long TICK_MS = 500;

    private final long behindMs;
    private long latestMs = Long.MIN_VALUE;
    private long next = -1;
    private long silentMs;
    private long tickedMs = Long.MIN_VALUE;
    private boolean paused;

    ReadProgress(long behindMs) {
        this.behindMs = behindMs;
    }

    /** A record was read. Its time is the broker's; of a topic with CreateTime it is a sender's, and may be wrong. */
    void read(long offset, long brokerMs) {
        next = offset + 1;
        silentMs = 0;
        latestMs = Math.max(latestMs, brokerMs);
    }

    /** The job reads this partition no further, or goes on. */
    void paused(boolean yes) {
        paused = yes;
        silentMs = 0;
    }

    /**
     * Called every now and then.
     *
     * @param start offset at which reading began, negative: unknown
     * @param end the broker's latest word about this partition, or null
     * @param answeredMs when the brokers were last asked something that they answered
     */
    void tick(long nowMs, long start, End end, long answeredMs) {
        if (!paused && tickedMs != Long.MIN_VALUE) silentMs += Math.min(Math.max(0, nowMs - tickedMs), TICK_MS);
        tickedMs = nowMs;
        long position = next >= 0 ? next : start;
        if (end != null && position >= 0 && position >= end.offset()) {
            latestMs = Math.max(latestMs, end.askedMs());
        } else if (silentMs >= GIVE_UP_MS && answeredMs > nowMs - NEWS_MS) {
            latestMs = Math.max(latestMs, nowMs);
        }
    }

    /** Everything that the broker received until then has been read, ms; Long.MIN_VALUE: unknown. */
    long readMs(long nowMs) {
        return Math.min(latestMs, nowMs - behindMs);
    }
}
