package oal.stream.block;

import java.util.ArrayList;
import java.util.List;
import oal.schema.ColumnSpec;
import oal.schema.Kind;
import oal.schema.TableSpec;
import oal.schema.Type;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.BatchHeader;
import oal.stream.codec.FlowDictionary;
import oal.stream.codec.TableRows;

/**
 * Puts the rows of a raw table into its block. ClickHouse's columns: ap_id, ts, boot_id, batch_seq, then the table's,
 * time left out.
 */
public final class RawRows {
    private static final int FIRST = 4;
    /** Columns that one FLOW column becomes. */
    private static final int FLOW_COLUMNS = 6;

    public final NativeBlockWriter writer;
    private final TableSpec spec;
    private final int[] target;

    public RawRows(TableSpec spec) {
        this.spec = spec;
        writer = new NativeBlockWriter(spec.name(), spec.clickhouse());
        List<String> names = new ArrayList<>(List.of("ap_id", "ts", "boot_id", "batch_seq"));
        target = new int[spec.columns().size()];
        for (ColumnSpec c : spec.columns()) {
            target[c.index()] = names.size();
            if (isTime(c)) continue;
            if (c.type() == Type.FLOW) names.addAll(List.of("flow_id", "client_addr", "server_addr", "client_port",
                    "server_port", "station_mac"));
            else names.add(c.name());
        }
        List<String> generated = spec.clickhouse().stream().map(oal.schema.ClickHouseColumn::name).toList();
        if (!names.equals(generated)) {
            throw new IllegalStateException("ClickHouse columns of " + spec.name() + " are " + generated
                    + ", this writer gives " + names);
        }
    }

    public void add(BatchDecoder decoder) {
        TableRows t = decoder.table(spec.id());
        if (t.rows == 0) return;
        BatchHeader h = decoder.header();
        writer.name(0).addRepeated(h.apId, t.rows);
        writer.number(1).addAll(t.timesUs(h), 0, t.rows);
        writer.number(2).addRepeated(h.bootId, t.rows);
        writer.number(3).addRepeated(h.seq, t.rows);
        for (ColumnSpec c : spec.columns()) {
            if (isTime(c)) continue;
            long[] values = t.column(c.index());
            if (c.kind() == Kind.KEY) addKey(c, t, values, decoder);
            else if (c.optional() >= 0) addOptional(c, t, values);
            else writer.number(target[c.index()]).addAll(values, 0, t.rows);
        }
    }

    private void addKey(ColumnSpec c, TableRows t, long[] perRun, BatchDecoder decoder) {
        int to = target[c.index()];
        for (int run = 0; run < t.runs; run++) {
            int n = t.runRows[run];
            switch (c.type()) {
                case FLOW -> addFlow(to, decoder.flows(), (int) perRun[run], n);
                case NAME -> writer.name(to).addRepeated(decoder.header().name((int) perRun[run]), n);
                case U8, U16, U32, U64, I8, I16, I32, I64, MAC -> writer.number(to).addRepeated(perRun[run], n);
            }
        }
    }

    private void addFlow(int to, FlowDictionary f, int i, int n) {
        writer.number(to).addRepeated(f.flowId[i], n);
        writer.address(to + 1).addRepeated(f.data, f.clientAddr[i], f.addrBytes[i], n);
        writer.address(to + 2).addRepeated(f.data, f.serverAddr[i], f.addrBytes[i], n);
        writer.number(to + 3).addRepeated(f.clientPort[i], n);
        writer.number(to + 4).addRepeated(f.serverPort[i], n);
        writer.number(to + FLOW_COLUMNS - 1).addRepeated(f.stationMac[i], n);
    }

    private void addOptional(ColumnSpec c, TableRows t, long[] values) {
        NumberColumn out = writer.number(target[c.index()]);
        int at = 0;
        for (int run = 0; run < t.runs; run++) {
            int n = t.runRows[run];
            if (t.absent(run, c.optional())) out.addNulls(n);
            else out.addAll(values, at, n);
            at += n;
        }
    }

    private static boolean isTime(ColumnSpec c) {
        return c.kind() == Kind.TICK || c.kind() == Kind.TIME_US;
    }
}
