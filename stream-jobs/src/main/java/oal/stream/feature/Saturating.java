package oal.stream.feature;

/** 64-bit arithmetic that saturates, as feature programs use it. */
final class Saturating {
    private Saturating() {}

    static long add(long a, long b) {
        long s = a + b;
        return ((a ^ s) & (b ^ s)) < 0 ? end(a) : s;
    }

    static long subtract(long a, long b) {
        long d = a - b;
        return ((a ^ b) & (a ^ d)) < 0 ? end(a) : d;
    }

    static long multiply(long a, long b) {
        long low = a * b;
        long high = Math.multiplyHigh(a, b);
        return high == low >> 63 ? low : end(a ^ b);
    }

    /** The state of an ewma after one more value, both times 256. */
    static long approach(long state, long value, int shift) {
        return add(state, subtract(value, state) >> shift);
    }

    /** Truncates toward zero. */
    static long divide(long a, long b) {
        return a == Long.MIN_VALUE && b == -1 ? Long.MAX_VALUE : a / b;
    }

    private static long end(long sign) {
        return sign < 0 ? Long.MIN_VALUE : Long.MAX_VALUE;
    }
}
