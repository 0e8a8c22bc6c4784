package oal.stream.feature;

import java.util.Arrays;

/** Identity of an entity across batches: its KEY columns, with names and flows resolved. */
record EntityKey(long[] part) {
    @Override
    public boolean equals(Object o) {
        return o instanceof EntityKey k && Arrays.equals(part, k.part);
    }

    @Override
    public int hashCode() {
        long h = 0;
        for (long p : part) h = (h ^ p) * 0x9E3779B97F4A7C15L;
        return (int) (h ^ h >>> 32);
    }
}
