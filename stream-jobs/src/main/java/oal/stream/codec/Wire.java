package oal.stream.codec;

/** Reads Protobuf's wire format from a span of bytes. Refuses anything that does not parse; allocates nothing. */
final class Wire {
    static final int VARINT = 0;
    static final int FIXED64 = 1;
    static final int BYTES = 2;
    static final int FIXED32 = 5;

    /** The top bit of each byte: another byte follows. */
    private static final long CONTINUES = 0x8080808080808080L;

    byte[] data;
    int at;
    int end;

    /** The field read last: its number, wire type and payload; a varint's payload is its bytes. */
    int field;
    int type;
    int from;
    int to;

    void reset(byte[] data, int from, int to) {
        this.data = data;
        this.at = from;
        this.end = to;
    }

    boolean more() {
        return at < end;
    }

    /** Next varint: at most ten bytes and 64 bits. */
    long varint() throws RefusedException {
        int p = at;
        if (p < end) {
            byte b = data[p];
            if (b >= 0) {
                at = p + 1;
                return b;
            }
        }
        return longVarint();
    }

    /** Of more than one byte. Up to eight bytes are taken as one word, where so many are left. */
    private long longVarint() throws RefusedException {
        int p = at;
        if (end - p >= Long.BYTES) {
            long word = (long) LITTLE.get(data, p);
            long last = ~word & CONTINUES;
            if (last != 0) {
                int top = Long.numberOfTrailingZeros(last);
                at = p + (top >>> 3) + 1;
                return sevenBitGroups(word & -1L >>> 63 - top);
            }
        }
        return bytewise();
    }

    /** The low seven bits of each byte, joined. */
    private static long sevenBitGroups(long x) {
        x = x & 0x007F007F007F007FL | (x & 0x7F007F007F007F00L) >>> 1;
        x = x & 0x00003FFF00003FFFL | (x & 0x3FFF00003FFF0000L) >>> 2;
        return x & 0x000000000FFFFFFFL | (x & 0x0FFFFFFF00000000L) >>> 4;
    }

    private long bytewise() throws RefusedException {
        long value = 0;
        for (int shift = 0; ; shift += 7) {
            if (at >= end) throw RefusedException.truncated("varint runs past offset " + end);
            int b = data[at++];
            value |= (long) (b & 0x7F) << shift;
            if (b >= 0) {
                if (shift == 63 && b > 1) throw RefusedException.malformed("varint over 64 bits");
                return value;
            }
            if (shift == 63) throw RefusedException.malformed("varint over ten bytes");
        }
    }

    long zigzag() throws RefusedException {
        long v = varint();
        return (v >>> 1) ^ -(v & 1);
    }

    /** Step over the next field and keep where its payload is. */
    void next() throws RefusedException {
        long key = varint();
        long number = key >>> 3;
        if (number == 0 || number >= 1 << 29) {
            throw RefusedException.malformed("field number " + Long.toUnsignedString(number));
        }
        field = (int) number;
        type = (int) (key & 7);
        from = at;
        long stop;
        switch (type) {
            case VARINT -> {
                varint();
                stop = at;
            }
            case FIXED64 -> stop = at + 8L;
            case BYTES -> {
                long size = varint();
                from = at;
                stop = size < 0 || size > end ? Long.MAX_VALUE : at + size;
            }
            case FIXED32 -> stop = at + 4L;
            default -> throw RefusedException.malformed("wire type " + type);
        }
        if (stop > end) throw RefusedException.truncated("field " + field + " runs past offset " + end);
        to = (int) stop;
        at = to;
    }

    long fixed64(int offset) {
        return (long) LITTLE.get(data, offset);
    }

    private static final java.lang.invoke.VarHandle LITTLE =
            java.lang.invoke.MethodHandles.byteArrayViewVarHandle(long[].class, java.nio.ByteOrder.LITTLE_ENDIAN);
}
