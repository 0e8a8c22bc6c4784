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
        for (int i = 10; i < 20; i++) assertNull(sequence.note(i));
    }

    @Test
    void missingThenReorderedThenDuplicate() {
        assertEquals(GapKind.MISSING, sequence.note(15));
        assertEquals(GapKind.REORDERED, sequence.note(12));
        assertEquals(GapKind.DUPLICATE, sequence.note(12));
        assertEquals(GapKind.REORDERED, sequence.note(10));
        assertEquals(GapKind.REORDERED, sequence.note(14));
        assertEquals(GapKind.REORDERED, sequence.note(11));
        assertEquals(GapKind.REORDERED, sequence.note(13));
        assertEquals(GapKind.DUPLICATE, sequence.note(15));
        assertEquals(GapKind.DUPLICATE, sequence.note(9), "before this job's first");
        assertNull(sequence.note(16));
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
                boolean fresh = s.note(seq) != GapKind.DUPLICATE;
                assertEquals(taken.add(seq), fresh, "round " + round + ", batch " + seq);
            }
            assertEquals(200, taken.size());
        }
    }

    @Test
    void holesAreBoundedAndOldOnesCountAsSeen() {
        for (long i = 0; i < 1000; i++) sequence.note(10 + 2 * i + 1);
        assertEquals(GapKind.DUPLICATE, sequence.note(10));
        assertEquals(GapKind.REORDERED, sequence.note(10 + 2 * 999));
    }

    @Test
    void aReportedHoleIsTheOneExpected() {
        List<String> told = new ArrayList<>();
        Arrivals.Listener listener = (kind, from, to) -> told.add(kind + " " + from + "-" + to);
        Arrivals a = new Arrivals();
        assertTrue(a.note(0, 1, 7, listener));
        assertTrue(a.note(0, 1, 10, listener));
        assertTrue(a.note(1, 1, 3, listener), "topics count apart");
        assertTrue(a.note(0, 2, 2, listener), "reboot");
        assertTrue(a.note(0, 1, 8, listener), "the last words of the incarnation before");
        assertTrue(a.note(0, 2, 3, listener));
        assertEquals(List.of("MISSING 8-9", "REBOOT 2-2", "MISSING 0-1", "REORDERED 8-8"), told);
    }
}
