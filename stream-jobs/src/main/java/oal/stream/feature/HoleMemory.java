package oal.stream.feature;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;
import java.util.BitSet;
import oal.schema.Tables;
import oal.schema.Topic;

/**
 * How long a hole in the input has an effect on the vector: which features may differ from those of the access point,
 * which had the batches that did not come here. Nothing is guessed but {@link #LIMIT}:
 *
 * <ul>
 *   <li>a window knows nothing of what came before it, once entities that ended within the hole are gone;
 *   <li>a value that is held until the next event waits for that event;
 *   <li>a lag repeats what was unknown;
 *   <li>an ewma forgets by degrees. It grows with its state, so it is computed twice, from the least and the greatest
 *       state that the access point may have. It is known when both give the same result: the hole then weighs less
 *       than rounding. With shift s that takes about 28 · 2^s decisions, 22 s for s = 3; and as long as the operand
 *       stands still, rounding may keep the last unit open.
 * </ul>
 */
final class HoleMemory {
    /**
     * What an operand may have been within a hole, at most: 4 GB of backlog, 71 minutes of round trip. More would make
     * the memory of an ewma longer, by a bit each 2^s · ln 2 decisions.
     */
    static final long LIMIT = 1L << 32;
    /** An entity that ended within a hole is dropped when the second batch after it begins. */
    private static final int SWEPT = 2;
    private static final Topic[] TOPICS = Topic.values();

    private final CompiledProgram program;
    /** Is there anything that is not known? If not, the rest has no meaning. */
    private boolean active;
    /** Was all known until the instant that is evaluated? Then states are what they are. */
    private boolean fresh;
    /** Of each feature at the instant evaluated last. */
    private final boolean[] unknown;
    /** Of a feature that reads rows: instants without a hole that its window holds. */
    private final int[] clean;
    /** Of a lag: bit i: its operand was unknown i + 1 instants ago. */
    private final long[] lagged;
    /** Of an ewma: the least and the greatest state that the access point may have. */
    private final long[] least;
    private final long[] most;
    /** Of each topic: batches since the last instant with a hole. */
    private final int[] batches = new int[TOPICS.length];

    HoleMemory(CompiledProgram program) {
        this.program = program;
        int n = program.size();
        unknown = new boolean[n];
        clean = new int[n];
        lagged = new long[n];
        least = new long[n];
        most = new long[n];
    }

    /** All that the access point may remember is unknown. */
    void restart() {
        active = true;
        Arrays.fill(unknown, true);
        Arrays.fill(clean, 0);
        Arrays.fill(lagged, -1);
        Arrays.fill(batches, 0);
        for (Feature f : program.features) if (f.op == FeatureOp.EWMA) open(f);
    }

    /** All is known: nothing came before. */
    void begin() {
        active = false;
    }

    void batch(Topic topic) {
        int t = topic.ordinal();
        if (batches[t] < SWEPT) batches[t]++;
    }

    /** Is a feature of the instant evaluated last unknown? */
    boolean lacks() {
        return active && any(unknown);
    }

    /**
     * An instant was evaluated.
     *
     * @param came of each topic: whether all of its interval came
     * @param x results
     * @param ewma states after it
     * @param events of each table of events: features that had a row since the last call with a hole; else null
     */
    void evaluated(boolean[] came, long[] x, long[] ewma, BitSet[] events) {
        if (!active) {
            if (!reads(came)) return;
            activate();
        }
        boolean open = false;
        for (Feature f : program.features) {
            unknown[f.index] = f.op.derived() ? derived(f, x, ewma) : read(f, came, events);
            open |= unknown[f.index] || f.op == FeatureOp.EWMA && least[f.index] != most[f.index];
        }
        for (Feature f : program.features) {
            if (!f.op.late()) continue;
            long bits = lagged[f.index] << 1 | (unknown[(int) f.a] ? 1 : 0);
            lagged[f.index] = bits;
            open |= bits << Long.SIZE - f.window != 0;
        }
        active = open;
        fresh = false;
    }

    /** Is there a hole in a topic that the program reads? */
    private boolean reads(boolean[] came) {
        for (Feature f : program.features) if (!f.op.derived() && !came[topic(f)]) return true;
        return false;
    }

    private void activate() {
        active = true;
        for (Feature f : program.features) clean[f.index] = f.lookback;
        Arrays.fill(lagged, 0);
        Arrays.fill(batches, SWEPT);
        Arrays.fill(unknown, false);
        fresh = true;
    }

    private boolean read(Feature f, boolean[] came, BitSet[] events) {
        int t = topic(f);
        BitSet heard = events[f.table];
        if (!came[t]) {
            clean[f.index] = 0;
            batches[t] = 0;
            if (heard != null) heard.clear(f.index);
            return true;
        }
        boolean waits = f.holds && clean[f.index] == 0 && (heard == null || !heard.get(f.index));
        if (!waits && clean[f.index] < f.lookback) clean[f.index]++;
        return clean[f.index] < f.lookback || batches[t] < SWEPT;
    }

    private boolean derived(Feature f, long[] x, long[] ewma) {
        int i = f.index;
        boolean a = unknown[(int) f.a];
        return switch (f.op) {
            case EWMA -> ewma(f, a, x[(int) f.a], ewma[i]);
            case LAG -> (lagged[i] >>> f.window - 1 & 1) != 0;
            case CHANGE -> a || (lagged[i] >>> f.window - 1 & 1) != 0;
            case RATIO, DIFF, ADD -> a || unknown[(int) f.b];
            case LAST, DELTA, RATE, MAX, MIN, MEAN, SUM, COUNT -> throw new IllegalStateException("feature " + i
                    + " is not derived");
        };
    }

    private boolean ewma(Feature f, boolean operandUnknown, long operand, long state) {
        int i = f.index;
        if (operandUnknown) {
            open(f);
            return true;
        }
        if (fresh) least[i] = most[i] = state;
        else if (operand != Feature.MISSING) {
            long scaled = Saturating.multiply(operand, 256);
            least[i] = Math.min(Saturating.approach(least[i], scaled, f.window), state);
            most[i] = Math.max(Saturating.approach(most[i], scaled, f.window), state);
        }
        return operand != Feature.MISSING && result(f, least[i]) != result(f, most[i]);
    }

    private static long result(Feature f, long state) {
        return Math.min(Math.max(Saturating.divide(state, 256), f.lo), f.hi);
    }

    private void open(Feature f) {
        Feature operand = program.features[(int) f.a];
        long low = Math.max(operand.lo, -LIMIT);
        long high = Math.min(operand.hi, LIMIT);
        if (operand.missing != Feature.MISSING) {
            low = Math.min(low, operand.missing);
            high = Math.max(high, operand.missing);
        }
        least[f.index] = Saturating.multiply(Math.min(low, high), 256);
        most[f.index] = Saturating.multiply(Math.max(low, high), 256);
    }

    /** Only while something is unknown; otherwise there is nothing to write. */
    boolean active() {
        return active;
    }

    void write(DataOutput out) throws IOException {
        for (Feature f : program.features) {
            int i = f.index;
            switch (f.op) {
                case EWMA -> {
                    out.writeLong(least[i]);
                    out.writeLong(most[i]);
                }
                case LAG, CHANGE -> out.writeLong(lagged[i]);
                case RATIO, DIFF, ADD -> { }
                case LAST, DELTA, RATE, MAX, MIN, MEAN, SUM, COUNT -> out.writeByte(clean[i]);
            }
        }
        for (int n : batches) out.writeByte(n);
    }

    void read(DataInput in) throws IOException {
        restart();
        for (Feature f : program.features) {
            int i = f.index;
            switch (f.op) {
                case EWMA -> {
                    least[i] = in.readLong();
                    most[i] = in.readLong();
                }
                case LAG, CHANGE -> lagged[i] = in.readLong();
                case RATIO, DIFF, ADD -> { }
                case LAST, DELTA, RATE, MAX, MIN, MEAN, SUM, COUNT -> clean[i] = in.readUnsignedByte();
            }
        }
        for (int t = 0; t < batches.length; t++) batches[t] = in.readUnsignedByte();
    }

    private static int topic(Feature f) {
        return Tables.ALL.get(f.table).topic().ordinal();
    }

    private static boolean any(boolean[] of) {
        for (boolean b : of) if (b) return true;
        return false;
    }
}
