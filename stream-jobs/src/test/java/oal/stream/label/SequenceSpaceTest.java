package oal.stream.label;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SequenceSpaceTest {
    private static final int NEAR_WRAP = -3000; // 2^32 − 3000

    private final SequenceSpace space = new SequenceSpace();

    @Test
    void newPayloadWasNotSeen() {
        assertEquals(0, space.observe(1000, 100));
        assertEquals(0, space.observe(1100, 100));
    }

    @Test
    void payloadSeenAgainIsCounted() {
        space.observe(1000, 100);
        assertEquals(100, space.observe(1000, 100));
        assertEquals(40, space.observe(1060, 100), "partly");
        assertEquals(160, space.observe(1000, 160), "over two segments");
    }

    @Test
    void aHoleThatIsFilledForTheFirstTimeIsNotALoss() {
        space.observe(1000, 100);
        space.observe(1300, 100);
        assertEquals(1, space.holes());
        assertEquals(0, space.observe(1100, 200), "late, never seen before");
        assertEquals(0, space.holes());
        assertEquals(200, space.observe(1100, 200), "now it was");
    }

    @Test
    void aHoleFilledInPartsIsSplit() {
        space.observe(0, 100);
        space.observe(1000, 100);
        assertEquals(0, space.observe(400, 100));
        assertEquals(2, space.holes());
        assertEquals(100, space.observe(300, 300), "the middle was seen");
        assertEquals(0, space.observe(100, 200));
        assertEquals(0, space.observe(600, 400));
        assertEquals(0, space.holes());
    }

    @Test
    void sequenceNumbersWrap() {
        for (int i = 0; i < 5; i++) assertEquals(0, space.observe(NEAR_WRAP + 1000 * i, 1000), "segment " + i);
        assertEquals(1000, space.observe(NEAR_WRAP + 2000, 1000));
        assertEquals(2000, space.observe(NEAR_WRAP + 2000, 2000), "across the wrap");
        space.observe(NEAR_WRAP + 6000, 1000);
        assertEquals(0, space.observe(NEAR_WRAP + 5000, 1000), "hole after the wrap");
    }

    @Test
    void aSynBeginsAfresh() {
        space.observe(5000, 1000);
        space.restart(5001);
        assertEquals(0, space.observe(5001, 999));
    }

    @Test
    void aFarJumpIsAnotherConnection() {
        space.observe(0, 1000);
        assertEquals(0, space.observe(1 << 30, 1000));
        assertEquals(0, space.holes());
        assertEquals(0, space.observe(0, 1000), "and back again");
    }

    @Test
    void theByteBeforeTheNextIsAKeepalives() {
        assertFalse(space.isLastByte(999));
        space.observe(1000, 100);
        assertTrue(space.isLastByte(1099));
        assertFalse(space.isLastByte(1100));
    }

    @Test
    void holesAreBounded() {
        for (int i = 0; i < 10_000; i++) space.observe(i * 200, 100);
        assertEquals(SequenceSpace.MAX_HOLES, space.holes());
        assertEquals(0, space.observe(9_998 * 200 + 100, 100), "a recent hole is known");
        assertEquals(100, space.observe(100, 100), "a forgotten one counts as seen");
    }

    /** Against a set of bytes, for any order of segments, near and far from the wrap. */
    @ParameterizedTest
    @ValueSource(ints = {0, NEAR_WRAP, 0x7FFFF000, 12345})
    void agreesWithASetOfBytes(int base) {
        Random random = new Random(base);
        for (int round = 0; round < 200; round++) {
            SequenceSpace s = new SequenceSpace();
            BitSet seen = new BitSet();
            s.restart(base);
            for (int i = 0; i < 60; i++) {
                int at = random.nextInt(4000);
                int length = 1 + random.nextInt(300);
                int before = seen.get(at, at + length).cardinality();
                assertEquals(before, s.observe(base + at, length), "round " + round + " segment " + i);
                seen.set(at, at + length);
            }
        }
    }
}
