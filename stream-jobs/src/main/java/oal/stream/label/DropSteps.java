package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;

/**
 * When one counter of drops grew, and by how much, in order of time. Each packet that it counted explains one loss:
 * what was taken is gone. At most {@link #MAX_STEPS} of the last {@link #KEPT_US} are kept.
 */
final class DropSteps {
    static final int MAX_STEPS = 1024;
    /** What is seen again later than this has waited for several timeouts of its flow. */
    static final long KEPT_US = 10_000_000;

    private long[] us = new long[4];
    private int[] count = new int[4];
    private int[] left = new int[4];
    private int steps;

    void add(long atUs, long pkts) {
        int n = (int) Math.min(pkts, Integer.MAX_VALUE);
        int gone = 0;
        while (gone < steps && us[gone] < atUs - KEPT_US) gone++;
        if (steps - gone == MAX_STEPS) gone++;
        if (gone > 0) {
            System.arraycopy(us, gone, us, 0, steps - gone);
            System.arraycopy(count, gone, count, 0, steps - gone);
            System.arraycopy(left, gone, left, 0, steps - gone);
            steps -= gone;
        }
        if (steps > 0 && us[steps - 1] == atUs) {
            count[steps - 1] += n;
            left[steps - 1] += n;
            return;
        }
        if (steps == us.length) {
            us = java.util.Arrays.copyOf(us, 2 * steps);
            count = java.util.Arrays.copyOf(count, 2 * steps);
            left = java.util.Arrays.copyOf(left, 2 * steps);
        }
        us[steps] = atUs;
        count[steps] = left[steps] = n;
        steps++;
    }

    /** Packets counted in [from, until]. */
    long counted(long fromUs, long untilUs) {
        long n = 0;
        for (int i = steps - 1; i >= 0 && us[i] >= fromUs; i--) if (us[i] <= untilUs) n += count[i];
        return n;
    }

    /** First step in [from, until] that has packets left that explain nothing yet; −1 if there is none. */
    int free(long fromUs, long untilUs) {
        for (int i = 0; i < steps && us[i] <= untilUs; i++) if (us[i] >= fromUs && left[i] > 0) return i;
        return -1;
    }

    /** First step in [from, until]; −1 if there is none. */
    int first(long fromUs, long untilUs) {
        for (int i = 0; i < steps && us[i] <= untilUs; i++) if (us[i] >= fromUs) return i;
        return -1;
    }

    long us(int step) {
        return us[step];
    }

    /** The packets from this step on explain a loss of {@code pkts}. */
    void take(int step, int pkts, long untilUs) {
        for (int i = step; pkts > 0 && i < steps && us[i] <= untilUs; i++) {
            int taken = Math.min(pkts, left[i]);
            left[i] -= taken;
            pkts -= taken;
        }
    }

    boolean before(long limitUs) {
        return steps == 0 || us[steps - 1] < limitUs;
    }

    void write(DataOutput out) throws IOException {
        out.writeShort(steps);
        for (int i = 0; i < steps; i++) {
            out.writeLong(us[i]);
            out.writeInt(count[i]);
            out.writeInt(left[i]);
        }
    }

    void read(DataInput in) throws IOException {
        steps = in.readUnsignedShort();
        if (steps > MAX_STEPS) throw new IOException(steps + " steps of a counter; at most " + MAX_STEPS + " are kept");
        us = new long[Math.max(4, steps)];
        count = new int[us.length];
        left = new int[us.length];
        for (int i = 0; i < steps; i++) {
            us[i] = in.readLong();
            count[i] = in.readInt();
            left[i] = in.readInt();
        }
    }
}
