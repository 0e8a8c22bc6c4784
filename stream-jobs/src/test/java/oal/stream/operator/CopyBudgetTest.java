package oal.stream.operator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class CopyBudgetTest {
    private static final int RECORD = 10_000;

    private final CopyBudget budget = new CopyBudget();
    private long nowMs = 1_800_000_000_000L;

    private long copied(String sender, int records) {
        long bytes = 0;
        for (int i = 0; i < records; i++) if (budget.take(sender, RECORD, nowMs)) bytes += RECORD;
        return bytes;
    }

    @Test
    void oneSenderHasAMinutesWorthAndThenItsRate() {
        long first = copied("a", 1000);
        assertTrue(first >= CopyBudget.OF_ONE && first < CopyBudget.OF_ONE + RECORD, first + " bytes");
        long later = 0;
        for (int s = 0; s < 600; s++) {
            nowMs += 1000;
            later += copied("a", 6);
        }
        assertEquals(10 * CopyBudget.OF_ONE, later, 2 * RECORD);
    }

    @Test
    void anotherSendersRecordsAreCopiedBesideIt() {
        copied("a", 1000);
        assertTrue(copied("b", 1) > 0);
    }

    @Test
    void manySendersTogetherAreBoundedToo() {
        long all = 0;
        for (int i = 0; i < 10_000; i++) all += copied("key " + i, 3);
        assertTrue(all >= CopyBudget.OF_ALL && all < CopyBudget.OF_ALL + RECORD, all + " bytes");
        nowMs += 3_600_000;
        assertTrue(copied("late", 1) > 0);
    }

    @Test
    void afterALargeRecordOthersOfItsSenderAreSeenButNotOfAllForEver() {
        assertTrue(budget.take("a", 1 << 20, nowMs));
        assertTrue(budget.take("a", 1000, nowMs));
        for (int i = 0; i < 3; i++) assertTrue(budget.take("a", 1 << 20, nowMs));
        assertFalse(budget.take("a", 1, nowMs));
        assertFalse(budget.take("b", 1, nowMs));
    }

    @Test
    void aClockThatGoesBackGivesNothing() {
        copied("a", 1000);
        nowMs -= 3_600_000;
        assertEquals(0, copied("a", 1));
    }
}
