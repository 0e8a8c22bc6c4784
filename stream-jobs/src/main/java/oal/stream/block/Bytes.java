package oal.stream.block;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** A growing array of little-endian numbers and bytes. */
final class Bytes {
    private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    byte[] data;
    int size;

    Bytes(int capacity) {
        data = new byte[capacity];
    }

    /** Make room for {@code n} more bytes and return where they go. */
    int grow(int n) {
        int at = size;
        if (n > data.length - at) data = Arrays.copyOf(data, Math.max(at + n, data.length * 2));
        size = at + n;
        return at;
    }

    /** Write {@code value} in {@code width} bytes at {@code at}. */
    void set(int at, int width, long value) {
        switch (width) {
            case 1 -> data[at] = (byte) value;
            case 2 -> SHORT.set(data, at, (short) value);
            case 4 -> INT.set(data, at, (int) value);
            case 8 -> LONG.set(data, at, value);
            default -> throw new IllegalArgumentException("no number has " + width + " bytes");
        }
    }

    void put(int width, long value) {
        set(grow(width), width, value);
    }

    void put(byte[] from, int at, int n) {
        int to = grow(n); // may replace the array
        System.arraycopy(from, at, data, to, n);
    }

    void putVarint(long value) {
        while ((value & ~0x7FL) != 0) {
            put(1, value & 0x7F | 0x80);
            value >>>= 7;
        }
        put(1, value);
    }

    void putString(byte[] utf8) {
        putVarint(utf8.length);
        put(utf8, 0, utf8.length);
    }

    /** Bytes at {@code from … size} again and again, until {@code times} copies are there. */
    void repeat(int from, int times) {
        int unit = size - from;
        int total = Math.multiplyExact(unit, times);
        grow(total - unit);
        for (int done = unit; done < total; ) {
            int n = Math.min(done, total - done);
            System.arraycopy(data, from, data, from + done, n);
            done += n;
        }
    }

    void clear() {
        size = 0;
    }
}
