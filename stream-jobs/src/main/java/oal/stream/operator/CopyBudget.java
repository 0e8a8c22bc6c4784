package oal.stream.operator;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * How many bytes of refused records may be copied to {@code dead.letters.v1}: of each sender and of all, a minute's
 * worth at once, then at that rate. A sender whose every record is refused, as one whose clock is a minute ahead, would
 * otherwise write all of its traffic there once more. Of one task; it is no state.
 */
final class CopyBudget {
    /** Bytes a minute: a few seconds of an access point's traffic, enough to see what is wrong with it. */
    static final long OF_ONE = 256 << 10;
    static final long OF_ALL = 4 << 20;
    /** Senders that are remembered; a key is the sender's choice. */
    static final int SENDERS = 1024;
    private static final long MINUTE_MS = 60_000;

    private final Bucket all = new Bucket(OF_ALL);
    private final Map<String, Bucket> senders = new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Bucket> eldest) {
            return size() > SENDERS;
        }
    };

    /**
     * Takes these bytes of what is left, or says that nothing is. One record may be larger than what is left; and of
     * its sender's share it takes at most an eighth, so that one large record leaves room to see others.
     */
    boolean take(String sender, int bytes, long nowMs) {
        Bucket one = senders.computeIfAbsent(sender, key -> new Bucket(OF_ONE));
        if (one.left(nowMs) <= 0 || all.left(nowMs) <= 0) return false;
        one.left -= Math.min(bytes, OF_ONE / 8);
        all.left -= bytes;
        return true;
    }

    private static final class Bucket {
        private final long perMinute;
        private double left;
        private long atMs = Long.MIN_VALUE;

        Bucket(long perMinute) {
            this.perMinute = perMinute;
            left = perMinute;
        }

        double left(long nowMs) {
            if (atMs != Long.MIN_VALUE && nowMs > atMs) {
                left = Math.min(perMinute, left + (double) perMinute * (nowMs - atMs) / MINUTE_MS);
            }
            atMs = nowMs;
            return left;
        }
    }
}
