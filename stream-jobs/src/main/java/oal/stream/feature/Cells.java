package oal.stream.feature;

import static oal.stream.feature.CompiledProgram.FILLED;
import static oal.stream.feature.CompiledProgram.HELD;
import static oal.stream.feature.CompiledProgram.MEAN_RING;
import static oal.stream.feature.CompiledProgram.OPEN;
import static oal.stream.feature.CompiledProgram.RING;
import static oal.stream.feature.CompiledProgram.SINCE;
import static oal.stream.feature.CompiledProgram.VALUE;

import oal.stream.codec.Counters;

/**
 * The state of one feature at one entity, inside the entity's words: FILLED = 0 before its first row, else 1 + closed
 * buckets kept; VALUE held; OPEN bucket; for a mean also SINCE when the value counts and µs HELD in the open bucket;
 * then the closed buckets.
 */
final class Cells {
    private Cells() {}

    /** Feed rows [from, to) of one run, in order of time and within one bucket. */
    static void feed(Feature f, long[] cells, long[] values, long[] ts, int from, int to) {
        int at = f.cell;
        boolean first = cells[at + FILLED] == 0;
        int i = from;
        switch (f.op) {
            case LAST -> { }
            case DELTA, RATE -> {
                long open = cells[at + OPEN];
                long value = cells[at + VALUE];
                if (first) value = values[i++];
                for (; i < to; i++) {
                    long v = values[i];
                    if (v != value) {
                        open = Saturating.add(open, Counters.increment(value, v, f.counterBits));
                        value = v;
                    }
                }
                cells[at + OPEN] = open;
            }
            case MAX -> {
                long open = first ? values[i] : cells[at + OPEN];
                for (; i < to; i++) open = Math.max(open, values[i]);
                cells[at + OPEN] = open;
            }
            case MIN -> {
                long open = first ? values[i] : cells[at + OPEN];
                for (; i < to; i++) open = Math.min(open, values[i]);
                cells[at + OPEN] = open;
            }
            case MEAN -> {
                if (first) {
                    cells[at + SINCE] = ts[i];
                    cells[at + VALUE] = values[i++];
                }
                for (; i < to; i++) {
                    hold(cells, at, ts[i]);
                    cells[at + VALUE] = values[i];
                }
            }
            case SUM -> {
                long open = cells[at + OPEN];
                for (; i < to; i++) open = Saturating.add(open, values[i]);
                cells[at + OPEN] = open;
            }
            case COUNT -> cells[at + OPEN] += to - from;
            case RATIO, EWMA, LAG, DIFF, ADD, CHANGE -> throw new IllegalStateException("derived feature " + f.index
                    + " reads no rows");
        }
        cells[at + VALUE] = values[to - 1];
        if (first) cells[at + FILLED] = 1;
    }

    private static void hold(long[] cells, int at, long untilUs) {
        long held = untilUs - cells[at + SINCE];
        cells[at + OPEN] = Saturating.add(cells[at + OPEN], Saturating.multiply(cells[at + VALUE], held));
        cells[at + HELD] += held;
        cells[at + SINCE] = untilUs;
    }

    /** Close the bucket that ends at {@code instant} and fold the window. Only for cells that had a row. */
    static long close(Feature f, long[] cells, long instant, long turn, long intervalUs) {
        int at = f.cell;
        if (f.op == FeatureOp.LAST) return cells[at + VALUE];
        boolean mean = f.op == FeatureOp.MEAN;
        if (mean) hold(cells, at, instant);
        int ring = at + (mean ? MEAN_RING : RING);
        int slot = (int) (turn % f.window);
        int kept = (int) Math.min(cells[at + FILLED], f.window); // buckets in the ring, this one included
        cells[at + FILLED] = kept + 1;
        cells[ring + slot] = cells[at + OPEN];
        if (f.op == FeatureOp.MAX || f.op == FeatureOp.MIN) {
            cells[at + OPEN] = cells[at + VALUE]; // the next bucket starts with the value held
            long best = cells[ring + slot];
            for (int k = 1; k < kept; k++) {
                slot = slot == 0 ? f.window - 1 : slot - 1;
                best = f.op == FeatureOp.MAX ? Math.max(best, cells[ring + slot]) : Math.min(best, cells[ring + slot]);
            }
            return best;
        }
        cells[at + OPEN] = 0;
        if (mean) {
            cells[ring + f.window + slot] = cells[at + HELD];
            cells[at + HELD] = 0;
        }
        long total = 0;
        long held = 0;
        slot = (int) Math.floorMod(turn - kept + 1, (long) f.window); // the oldest first: saturation depends on order
        for (int k = 0; k < kept; k++) {
            total = Saturating.add(total, cells[ring + slot]);
            if (mean) held += cells[ring + f.window + slot];
            slot = slot + 1 == f.window ? 0 : slot + 1;
        }
        if (mean) return held != 0 ? Saturating.divide(total, held) : cells[at + VALUE];
        if (f.op == FeatureOp.RATE) {
            return Saturating.divide(Saturating.multiply(total, 1_000_000), f.window * intervalUs);
        }
        return total;
    }
}
