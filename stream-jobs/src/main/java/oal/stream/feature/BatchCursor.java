package oal.stream.feature;

import java.util.Arrays;
import oal.schema.Tables;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.TableRows;

/**
 * Walks the rows of one table of a batch in order of time, several rows of a run at once where possible. It keeps no
 * state between batches.
 */
final class BatchCursor {
    private static final int INDEX_BITS = 16;
    private static final int INDEX_MASK = (1 << INDEX_BITS) - 1;

    private final CompiledProgram program;
    private final int id;
    private final Feature[] features;
    private TableRows rows;
    private long[] ts;
    private Entity[] entity = new Entity[16];
    /** Of each run: next row, end. */
    private int[] at = new int[16];
    private int[] end = new int[16];
    /** Rows sorted by (time, index), where runs cannot be walked one by one; index in the low bits. */
    private long[] order = new long[0];
    private int[] runOf = new int[0];
    private int ordered;
    private int next;
    private long t0Us;
    long lastUs;

    BatchCursor(CompiledProgram program, int table) {
        this.program = program;
        this.id = table;
        this.features = program.byTable[table];
    }

    /** Begin a batch. Rows at or after {@code untilUs} are left out. */
    void open(EntityTable table, BatchDecoder batch, long untilUs) {
        rows = batch.table(id);
        lastUs = Long.MIN_VALUE;
        ordered = -1;
        next = 0;
        if (rows.rows == 0) return;
        t0Us = batch.header().t0Us;
        ts = rows.timesUs(batch.header());
        if (entity.length < rows.runs) {
            entity = new Entity[rows.runs * 2];
            at = new int[rows.runs * 2];
            end = new int[rows.runs * 2];
        }
        for (Entity e : table.entities) e.lastUs = Long.MIN_VALUE;
        boolean sort = program.ordered[id];
        int from = 0;
        for (int run = 0; run < rows.runs; run++) {
            int to = from + rows.runRows[run];
            Entity e = table.of(batch, rows, run);
            e.seen = true;
            entity[run] = e;
            at[run] = from;
            end[run] = to;
            if (!table.spec.event()) {
                if (from > 0 && ts[from] < e.lastUs && e.lastUs != Long.MIN_VALUE) sort = true;
                e.lastUs = ts[to - 1];
            }
            for (int i = from + 1; i < to; i++) sort |= ts[i] < ts[i - 1];
            from = to;
        }
        for (int i = 0; i < rows.rows; i++) if (ts[i] < untilUs && ts[i] > lastUs) lastUs = ts[i];
        if (sort) sort(untilUs);
        else for (int run = 0; run < rows.runs; run++) while (end[run] > at[run]
                && ts[end[run] - 1] >= untilUs) end[run]--;
    }

    private void sort(long untilUs) {
        if (order.length < rows.rows) {
            order = new long[rows.rows * 2];
            runOf = new int[rows.rows * 2];
        }
        ordered = 0;
        int i = 0;
        for (int run = 0; run < rows.runs; run++) {
            for (; i < end[run]; i++) {
                runOf[i] = run;
                if (ts[i] < untilUs) order[ordered++] = ts[i] - t0Us << INDEX_BITS | i;
            }
        }
        Arrays.sort(order, 0, ordered);
    }

    /** Feed the features with the rows whose time is up to {@code instant}. */
    void feedUntil(long instant) {
        if (rows.rows == 0) return;
        if (ordered >= 0) {
            for (; next < ordered; next++) {
                int i = (int) (order[next] & INDEX_MASK);
                if (ts[i] > instant) return;
                feed(runOf[i], i, i + 1);
            }
            return;
        }
        for (int run = 0; run < rows.runs; run++) {
            int from = at[run];
            int to = from;
            while (to < end[run] && ts[to] <= instant) to++;
            if (to == from) continue;
            feed(run, from, to);
            at[run] = to;
        }
    }

    private void feed(int run, int from, int to) {
        long[] cells = entity[run].cells;
        for (Feature f : features) {
            if (f.filterColumn >= 0 && rows.column(f.filterColumn)[run] != f.filterValue) continue;
            if (rows.absent(run, f.optional)) continue;
            if (f.holds) entity[run].heard.set(f.index);
            if (f.key) Cells.feed(f, cells, rows.column(f.column), ts, run, run + 1); // it has one value a run
            else Cells.feed(f, cells, rows.column(f.column), ts, from, to);
        }
    }

    static {
        if (Tables.ALL.stream().anyMatch(t -> t.maxRows() > INDEX_MASK + 1)) {
            throw new IllegalStateException("a table's max_rows is over 65536");
        }
    }
}
