package oal.stream.codec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class WireTest {
    /** Base 128, least group first, of at least so many bytes. */
    private static byte[] varint(long value, int bytes) {
        byte[] out = new byte[10];
        int n = 0;
        for (; n < bytes - 1 || value >>> 7 != 0; value >>>= 7) out[n++] = (byte) (value & 0x7F | 0x80);
        out[n++] = (byte) value;
        return Arrays.copyOf(out, n);
    }

    @Test
    void everyLengthAtEveryDistanceFromTheEnd() throws RefusedException {
        Random random = new Random(5);
        Wire wire = new Wire();
        for (int bits = 0; bits <= 64; bits++) {
            for (int behind = 0; behind < 12; behind++) {
                long value = bits == 0 ? 0 : random.nextLong() | Long.MIN_VALUE;
                if (bits > 0) value >>>= 64 - bits;
                byte[] encoded = varint(value, 1 + random.nextInt(9));
                byte[] data = new byte[3 + encoded.length + behind];
                Arrays.fill(data, (byte) 0xFF);
                System.arraycopy(encoded, 0, data, 3, encoded.length);
                wire.reset(data, 3, data.length);
                assertEquals(value, wire.varint(), bits + " bits, " + behind + " bytes behind");
                assertEquals(3 + encoded.length, wire.at);
            }
        }
    }

    @Test
    void whatDoesNotEndIsRefusedAndNothingBehindTheEndIsRead() {
        Wire wire = new Wire();
        for (int length = 1; length < 10; length++) {
            byte[] data = new byte[32];
            Arrays.fill(data, 0, length, (byte) 0x80);
            data[length] = 1;
            int end = length;
            wire.reset(data, 0, end);
            assertThrows(RefusedException.class, wire::varint, length + " bytes");
        }
        byte[] eleven = new byte[16];
        Arrays.fill(eleven, 0, 10, (byte) 0x80);
        wire.reset(eleven, 0, 16);
        assertThrows(RefusedException.class, wire::varint);
        byte[] wide = varint(-1, 10);
        wide[9] = 2;
        wire.reset(wide, 0, 10);
        assertThrows(RefusedException.class, wire::varint);
    }
}
