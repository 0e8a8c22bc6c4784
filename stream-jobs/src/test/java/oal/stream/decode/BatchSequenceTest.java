package oal.stream.decode;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class BatchSequenceTest {
    private final BatchSequence sequence = new BatchSequence(1, 10);

    @Test
    void inOrder() {
        for (int i = 10; i < 20; i++) assertNull(sequence.take(i));
    }

    @Test
    void missingThenReorderedThenDuplicate() {
        assertEquals(GapKind.MISSING, sequence.take(15));
        assertEquals(GapKind.REORDERED, sequence.take(12));
        assertEquals(GapKind.DUPLICATE, sequence.take(12));
        assertEquals(GapKind.REORDERED, sequence.take(10));
        assertEquals(GapKind.REORDERED, sequence.take(14));
        assertEquals(GapKind.REORDERED, sequence.take(11));
        assertEquals(GapKind.REORDERED, sequence.take(13));
        assertEquals(GapKind.DUPLICATE, sequence.take(15));
        assertEquals(GapKind.DUPLICATE, sequence.take(9), "before this job's first");
        assertNull(sequence.take(16));
    }

    /** In any order, each number is taken once. */
    @Test
    void everyBatchIsTakenOnce() {
        Random random = new Random(3);
        for (int round = 0; round < 50; round++) {
            BatchSequence s = new BatchSequence(1, 0);
            List<Long> order = new ArrayList<>();
            for (long i = 0; i < 200; i++) for (int k = random.nextInt(3); k >= 0; k--) order.add(i);
            for (int i = 0; i < order.size(); i++) {
                Collections.swap(order, i, Math.min(order.size() - 1, i + random.nextInt(20)));
            }
            Set<Long> taken = new HashSet<>();
            for (long seq : order) {
                boolean fresh = s.take(seq) != GapKind.DUPLICATE;
                assertEquals(taken.add(seq), fresh, "round " + round + ", batch " + seq);
            }
            assertEquals(200, taken.size());
        }
    }

    @Test
    void holesAreBoundedAndOldOnesCountAsSeen() {
        for (long i = 0; i < 1000; i++) sequence.take(10 + 2 * i + 1);
        assertEquals(GapKind.DUPLICATE, sequence.take(10));
        assertEquals(GapKind.REORDERED, sequence.take(10 + 2 * 999));
    }

    @Test
    void aReportedHoleIsTheOneExpected() {
        List<String> told = new ArrayList<>();
        Arrivals.Listener listener = (kind, from, to) -> told.add(kind + " " + from + "-" + to);
        Arrivals a = new Arrivals();
        assertTrue(a.take(0, 1, 7, listener));
        assertTrue(a.take(0, 1, 10, listener));
        assertTrue(a.take(1, 1, 3, listener), "topics count apart");
        assertTrue(a.take(0, 2, 2, listener), "reboot");
        assertTrue(a.take(0, 1, 8, listener), "the last words of the incarnation before");
        assertTrue(a.take(0, 2, 3, listener));
        assertEquals(List.of("MISSING 8-9", "REBOOT 2-2", "MISSING 0-1", "REORDERED 8-8"), told);
    }
}
