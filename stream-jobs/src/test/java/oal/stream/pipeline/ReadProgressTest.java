package oal.stream.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;

import oal.stream.pipeline.PartitionEnds.End;
import org.junit.jupiter.api.Test;

class ReadProgressTest {
    private static final long NOW_MS = 1_800_000_000_000L;
    private static final long BEHIND_MS = 60_000;
    private static final long UNKNOWN = Long.MIN_VALUE;

    private final ReadProgress progress = new ReadProgress(BEHIND_MS);
    private long nowMs = NOW_MS;

    /** Ticks for so long, twenty a second. */
    private long after(long ms, long start, End end, boolean answers) {
        for (long until = nowMs + ms; nowMs < until; nowMs += 50) {
            progress.tick(nowMs, start, end, answers ? nowMs : NOW_MS - 3_600_000);
        }
        return progress.readMs(nowMs);
    }

    @Test
    void nothingIsKnownBeforeTheFirstRecordOrAnswer() {
        assertEquals(UNKNOWN, after(1000, -1, null, true));
        assertEquals(UNKNOWN, after(1000, 0, null, true));
        assertEquals(UNKNOWN, after(1000, -1, new End(0, nowMs), true), "where it began is not known");
    }

    @Test
    void aBacklogIsReadUpToItsLatestRecord() {
        progress.read(0, NOW_MS - 600_000);
        progress.read(1, NOW_MS - 500_000);
        progress.read(2, NOW_MS - 500_500);
        assertEquals(NOW_MS - 500_000, after(100, 0, new End(90, nowMs), true));
    }

    @Test
    void aPartitionAtItsEndCountsAsReadUpToWhenItWasAsked() {
        assertEquals(NOW_MS - BEHIND_MS + 50, after(50, 0, new End(0, nowMs), true), "an empty one, at once");
        progress.read(7, NOW_MS - 600_000);
        assertEquals(nowMs + 50 - BEHIND_MS, after(50, 0, new End(8, nowMs), true));
    }

    @Test
    void recordsOfTheLastMinuteHoldBackNoPartitionAtItsEnd() {
        progress.read(7, NOW_MS - 10);
        assertEquals(NOW_MS - BEHIND_MS, progress.readMs(NOW_MS));
    }

    @Test
    void aRecordTimeInTheFutureDoesNotCount() {
        progress.read(7, NOW_MS + 3_600_000);
        assertEquals(NOW_MS - BEHIND_MS, progress.readMs(NOW_MS));
    }

    /** For the whole of an outage, however long: what came before it may be unread. */
    @Test
    void whileTheBrokerIsAwayNothingIsTakenForSilent() {
        progress.read(7, NOW_MS - 600_000);
        assertEquals(NOW_MS - 600_000, after(3_600_000, 0, new End(90, NOW_MS), false));
        assertEquals(NOW_MS - 600_000, after(1000, 0, null, false));
    }

    @Test
    void atItsEndBeforeTheBrokerWentItIsReadUpToTheLastAnswer() {
        progress.read(7, NOW_MS - 600_000);
        assertEquals(NOW_MS, after(3_600_000, 0, new End(8, NOW_MS), false));
    }

    @Test
    void aPartitionThatIsSilentWhileBrokersAnswerIsGivenUpAtLast() {
        progress.read(7, NOW_MS - 600_000);
        assertEquals(NOW_MS - 600_000, after(ReadProgress.GIVE_UP_MS, 0, new End(90, NOW_MS), true));
        assertEquals(nowMs + 100 - BEHIND_MS, after(100, 0, new End(90, NOW_MS), true));
    }

    @Test
    void aPartitionThatMayNotBeReadIsNotSilent() {
        progress.read(7, NOW_MS - 600_000);
        progress.paused(true);
        assertEquals(NOW_MS - 600_000, after(10 * ReadProgress.GIVE_UP_MS, 0, new End(90, NOW_MS), true));
        progress.paused(false);
        assertEquals(NOW_MS - 600_000, after(1000, 0, new End(90, NOW_MS), true));
    }

    @Test
    void aJobThatDidNotReadHeardNoSilence() {
        progress.read(7, NOW_MS - 600_000);
        for (int i = 0; i < 20; i++) {
            nowMs += ReadProgress.GIVE_UP_MS;
            progress.tick(nowMs, 0, new End(90, nowMs), nowMs);
        }
        assertEquals(NOW_MS - 600_000, progress.readMs(nowMs));
    }
}
