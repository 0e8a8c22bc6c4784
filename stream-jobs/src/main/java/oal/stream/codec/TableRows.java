package oal.stream.codec;

import oal.schema.ColumnSpec;
import oal.schema.Fields;
import oal.schema.Kind;
import oal.schema.TableSpec;
import oal.schema.Type;

/**
 * Rows of one table of a batch, decoded column by column. Arrays are reused from batch to batch and may be longer than
 * what they hold.
 */
public final class TableRows {
    /** A column that a batch leaves out is 0 in every row; all of them share this. */
    private static final long[] ZEROS = new long[65536];

    public final TableSpec spec;
    public int rows;
    public int runs;
    /** Per run: number of its rows, and bit i set = the i-th optional column is absent. */
    public int[] runRows = new int[16];
    public long[] runAbsent = new long[16];

    /** KEY columns: a value per run. Others: a value per row. Null where not asked for. */
    private final long[][] column;
    private final long[][] store;
    private final boolean[] wanted;
    private final int[] spanFrom;
    private final int[] spanTo;
    private final int[] columnOfField;
    private final int optionals;
    private final int timeColumn;
    /** Of the column that was decoded last. */
    private long min;
    private long max;
    private long[] timeUs = new long[0];
    private boolean timed;
    private final Wire list = new Wire();

    TableRows(TableSpec spec, boolean[] wanted) {
        this.spec = spec;
        int n = spec.columns().size();
        this.wanted = new boolean[n];
        int time = -1;
        int last = Fields.RUN_ABSENT;
        int optional = 0;
        for (ColumnSpec c : spec.columns()) {
            this.wanted[c.index()] = wanted == null || wanted[c.index()];
            if (c.kind() == Kind.TICK || c.kind() == Kind.TIME_US) time = c.index();
            if (c.optional() >= 0) optional++;
            last = Math.max(last, c.field());
        }
        timeColumn = time;
        optionals = optional;
        column = new long[n][];
        store = new long[n][];
        for (int i = 0; i < n; i++) store[i] = ZEROS;
        spanFrom = new int[last + 1];
        spanTo = new int[last + 1];
        columnOfField = new int[last + 1];
        java.util.Arrays.fill(columnOfField, -1);
        for (ColumnSpec c : spec.columns()) columnOfField[c.field()] = c.index();
    }

    void clear() {
        rows = 0;
        runs = 0;
        timed = false;
    }

    /** Values of a column that was asked for: per run for a KEY column, else per row. */
    public long[] column(int index) {
        if (!wanted[index]) {
            throw new IllegalStateException(spec.name() + "." + spec.columns().get(index).name()
                    + " was not asked for");
        }
        return column[index];
    }

    /** Time of each row, µs since 1970. Computed at the first call for a batch. */
    public long[] timesUs(BatchHeader header) {
        if (!timed) {
            if (timeUs.length < rows) timeUs = new long[roundUp(rows)];
            long[] at = column(timeColumn);
            long unit = spec.columns().get(timeColumn).kind() == Kind.TICK ? header.tickUs : 1;
            for (int i = 0; i < rows; i++) timeUs[i] = header.t0Us + at[i] * unit;
            timed = true;
        }
        return timeUs;
    }

    public boolean absent(int run, int optional) {
        return optional >= 0 && (runAbsent[run] >>> optional & 1) != 0;
    }

    void decode(Wire w, BatchHeader header, int flows) throws RefusedException {
        java.util.Arrays.fill(spanFrom, -1);
        while (w.more()) {
            w.next();
            int f = w.field;
            // a later revision's field
            if (f >= spanFrom.length || (f > Fields.RUN_ABSENT && columnOfField[f] < 0)) continue;
            if (w.type != Wire.BYTES || spanFrom[f] >= 0) {
                throw RefusedException.malformed(spec.name() + ": field " + f + " repeated or of wire type " + w.type);
            }
            spanFrom[f] = w.from;
            spanTo[f] = w.to;
        }
        decodeRuns(w.data);
        for (int i = 0; i < column.length; i++) {
            ColumnSpec c = spec.columns().get(i);
            if (!wanted[i]) continue;
            if (spanFrom[c.field()] < 0) {
                column[i] = ZEROS;
            } else {
                list.reset(w.data, spanFrom[c.field()], spanTo[c.field()]);
                int need = c.kind() == Kind.KEY ? runs : rows;
                if (store[i] == ZEROS || store[i].length < need) store[i] = new long[roundUp(need)];
                column[i] = store[i];
                if (c.kind() == Kind.KEY) decodeKey(c, column[i]);
                else decodeValues(c, column[i]);
            }
            check(c, column[i], header, flows);
        }
    }

    private void decodeRuns(byte[] data) throws RefusedException {
        runs = 0;
        rows = 0;
        long sum = 0;
        boolean bad = false;
        if (spanFrom[Fields.RUN_ROWS] >= 0) {
            list.reset(data, spanFrom[Fields.RUN_ROWS], spanTo[Fields.RUN_ROWS]);
            while (list.more()) {
                long n = list.varint();
                bad |= n <= 0 || n > spec.maxRows() || runs == spec.maxRuns();
                if (bad) continue;
                sum += n;
                bad = sum > spec.maxRows();
                if (runs == runRows.length) {
                    runRows = java.util.Arrays.copyOf(runRows, runs * 2);
                    runAbsent = java.util.Arrays.copyOf(runAbsent, runs * 2);
                }
                runAbsent[runs] = 0;
                runRows[runs++] = (int) n;
            }
        }
        if (bad) throw RefusedException.malformed(spec.name() + ": run lengths");
        rows = (int) sum;
        if (spanFrom[Fields.RUN_ABSENT] < 0) return;
        list.reset(data, spanFrom[Fields.RUN_ABSENT], spanTo[Fields.RUN_ABSENT]);
        int n = 0;
        while (list.more()) {
            long bits = list.varint();
            bad |= n == runs || bits >>> optionals != 0;
            if (!bad) runAbsent[n++] = bits;
        }
        if (bad || n != runs) throw RefusedException.malformed(spec.name() + ": run_absent");
    }

    private void decodeKey(ColumnSpec c, long[] out) throws RefusedException {
        int n = 0;
        while (list.more()) {
            long v = list.zigzag();
            if (n < runs) out[n] = v;
            n++;
        }
        if (n != runs) {
            throw RefusedException.malformed(spec.name() + "." + c.name() + ": " + n + " keys for " + runs + " runs");
        }
    }

    /**
     * Differences within a run, runs of zeros counted. The hottest loop of the job: it keeps its cursor in a local
     * variable.
     */
    private void decodeValues(ColumnSpec c, long[] out) throws RefusedException {
        final Wire in = list;
        final byte[] data = in.data;
        final int stop = in.end;
        final int n = rows;
        int p = in.at;
        int i = 0;
        int run = -1;
        int runEnd = 0;
        long value = 0;
        long low = Long.MAX_VALUE;
        long high = Long.MIN_VALUE;
        while (p < stop) {
            long raw = data[p];
            if (raw >= 0) {
                p++;
            } else if (p + 1 < stop && data[p + 1] >= 0) {
                raw = raw & 0x7F | (long) data[p + 1] << 7;
                p += 2;
            } else {
                in.at = p;
                raw = in.varint();
                p = in.at;
            }
            if (raw != 0) {
                if (i >= n) throw tooMany(c);
                long delta = (raw >>> 1) ^ -(raw & 1);
                if (i == runEnd) {
                    runEnd += runRows[++run];
                    value = delta;
                } else {
                    long sum = value + delta;
                    if (((value ^ sum) & (delta ^ sum)) < 0) {
                        throw RefusedException.valueRange(spec.name() + "." + c.name());
                    }
                    value = sum;
                }
                low = Math.min(low, value);
                high = Math.max(high, value);
                out[i++] = value;
                continue;
            }
            if (p >= stop) throw RefusedException.malformed(spec.name() + "." + c.name() + ": zero without a count");
            in.at = p;
            long more = in.zigzag();
            p = in.at;
            if (more < 0) throw RefusedException.malformed(spec.name() + "." + c.name() + ": negative count of zeros");
            if (more >= n - i) throw tooMany(c);
            int until = i + (int) more + 1;
            while (i < until) {
                if (i == runEnd) {
                    runEnd += runRows[++run];
                    value = 0;
                    low = Math.min(low, 0);
                    high = Math.max(high, 0);
                }
                int part = Math.min(until, runEnd);
                while (i < part) out[i++] = value;
            }
        }
        if (i != n) {
            throw RefusedException.malformed(spec.name() + "." + c.name() + ": " + i + " values for " + n + " rows");
        }
        min = low;
        max = high;
    }

    private void check(ColumnSpec c, long[] values, BatchHeader header, int flows) throws RefusedException {
        if (rows == 0) return;
        if (values == ZEROS) {
            min = max = 0;
        } else if (c.kind() == Kind.KEY) {
            min = max = values[0];
            for (int i = 1; i < runs; i++) {
                min = Math.min(min, values[i]);
                max = Math.max(max, values[i]);
            }
        }
        if (min < c.type().min || max > c.type().max) {
            throw RefusedException.valueRange(spec.name() + "." + c.name() + ": " + (min < c.type().min ? min : max));
        }
        if (c.type() == Type.NAME && max >= header.names) throw outside(c, "name");
        if (c.type() == Type.FLOW && max >= flows) throw outside(c, "flow");
        if (c.index() == timeColumn) {
            long unit = c.kind() == Kind.TICK ? header.tickUs : 1;
            if (min < 0 || max > (BatchHeader.MAX_OFFSET_US - 1) / unit) {
                throw RefusedException.valueRange(spec.name() + "." + c.name() + ": time outside the batch");
            }
        }
    }

    private RefusedException tooMany(ColumnSpec c) {
        return RefusedException.malformed(spec.name() + "." + c.name() + ": more than " + rows + " values");
    }

    private RefusedException outside(ColumnSpec c, String what) {
        return RefusedException.malformed(spec.name() + "." + c.name() + ": " + what + " outside the dictionary");
    }

    private static int roundUp(int n) {
        return Math.max(64, Integer.highestOneBit(Math.max(1, n - 1)) << 1);
    }
}
