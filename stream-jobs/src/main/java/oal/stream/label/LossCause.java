package oal.stream.label;

import oal.schema.Settings;

/** Where and when a range was dropped, from the counters of its own station between first sight and repetition. */
final class LossCause {
    /** A counter is read once a tick: a drop shows at the read after it. */
    private static final long READ_US = Settings.TICK_US;
    /** Reads are late at times, while their rows have the tick's time. */
    private static final long LATE_US = Settings.TICK_US;
    /**
     * A frame is given up after its last attempt, so its packet left the queue earlier than its failure was counted: by
     * some turns of the station. Measured in the lab, anything from 10 to 50 ms tells the two apart alike
     * (policies/loss-cause).
     */
    private static final long ATTEMPTS_US = 20_000;

    private LossCause() {}

    /** Fills cause, counters and time of the drop; the rest is there. */
    static void find(Loss loss, StationCounters counters) {
        loss.queueCounter = Loss.NO_QUEUE_COUNTER;
        loss.queueDropPkts = loss.macFailedPkts = Loss.ABSENT;
        loss.cause = Loss.UNKNOWN;
        loss.stampedBy = Loss.BY_FIRST_SIGHT;
        loss.droppedUs = loss.seenUs;
        StationCounters.Station s = counters.of(loss.stationMac);
        if (s == null) return;
        long fromUs = loss.seenUs - LATE_US;
        long untilUs = loss.resentUs + READ_US;
        Found queue = new Found();
        if (s.txq) {
            loss.queueCounter = Loss.TXQ;
            queue.in(s.queueDrops, fromUs, untilUs);
            queue.counted += s.queueDrops.counted(fromUs, untilUs);
        }
        for (StationCounters.Qdisc q : counters.qdiscs(s.device)) {
            if (loss.queueCounter == Loss.NO_QUEUE_COUNTER) loss.queueCounter = Loss.QDISC;
            if (q.tailDrop) { // at first sight, or never
                queue.in(q.drops, loss.seenUs, loss.seenUs + READ_US);
                if (!queue.free) queue.in(q.drops, fromUs, loss.seenUs + READ_US + LATE_US);
            } else {
                queue.in(q.drops, fromUs, untilUs);
            }
            queue.counted += q.drops.counted(fromUs, untilUs);
        }
        if (loss.queueCounter != Loss.NO_QUEUE_COUNTER) loss.queueDropPkts = queue.counted;
        Found air = new Found();
        if (s.air) {
            air.in(s.macFailures, fromUs, untilUs);
            loss.macFailedPkts = s.macFailures.counted(fromUs, untilUs);
        }
        boolean free = queue.free || air.free;
        boolean byQueue = free ? queue.free : queue.steps != null;
        boolean byAir = free ? air.free : air.steps != null;
        if (!byQueue && !byAir) return;
        // Packets of a station leave its queue in order, so the first to have left explains the first that is missed.
        long ahead = byQueue && byAir ? air.us - ATTEMPTS_US - queue.us : 0;
        if (byQueue && byAir && Math.abs(ahead) < READ_US) loss.cause = Loss.BOTH;
        else loss.cause = byQueue && ahead >= 0 ? Loss.QUEUE : Loss.AIR;
        Found by = loss.cause == Loss.AIR ? air : queue;
        by.steps.take(by.step, loss.pkts, by.untilUs);
        loss.stampedBy = Loss.BY_COUNTER;
        loss.droppedUs = Math.max(loss.seenUs, Math.min(by.us, loss.resentUs));
    }

    /** The first step of some counters, one with packets that explain nothing yet before one without. */
    private static final class Found {
        DropSteps steps;
        int step;
        long us;
        long untilUs;
        boolean free;
        long counted;

        void in(DropSteps of, long fromUs, long until) {
            int at = of.free(fromUs, until);
            boolean isFree = at >= 0;
            if (!isFree) at = of.first(fromUs, until);
            if (at < 0 || steps != null && (free != isFree ? free : us <= of.us(at))) return;
            steps = of;
            step = at;
            us = of.us(at);
            untilUs = until;
            free = isFree;
        }
    }
}
