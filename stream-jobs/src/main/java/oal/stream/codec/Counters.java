package oal.stream.codec;

/** Growth of counters, as schema/README.md defines it. */
public final class Counters {
    private Counters() {}

    /**
     * Growth from {@code before} to {@code now}. A fall of a 32-bit counter by more than half its range is a wrap; any
     * other fall is a restart, and the growth is the new value.
     *
     * @param bits width at which the counter wraps; 0: a level, which may fall
     */
    public static long increment(long before, long now, int bits) {
        long d = now - before;
        if (((now ^ before) & (now ^ d)) < 0) d = now < 0 ? Long.MIN_VALUE : Long.MAX_VALUE;
        if (bits == 0 || d >= 0) return d;
        return bits == 32 && -d > 1L << 31 ? d + (1L << 32) : now;
    }
}
