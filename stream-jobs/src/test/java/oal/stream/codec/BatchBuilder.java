package oal.stream.codec;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import oal.schema.ColumnSpec;
import oal.schema.Fields;
import oal.schema.Kind;
import oal.schema.Settings;
import oal.schema.TableSpec;
import oal.schema.Topic;

/**
 * Encodes batches for tests, as schema/README.md says. Rows are given in wire order; a row is the values of all columns
 * in order.
 */
public final class BatchBuilder {
    public record Flow(long id, byte[] client, byte[] server, int clientPort, int serverPort, long stationMac) {
        public static Flow of(long id) {
            return new Flow(id, new byte[] {10, 0, 0, (byte) id}, new byte[] {(byte) 192, 0, 2, 1},
                    40000 + (int) (id & 0xFFF), 443, 0x020000000100L + id);
        }
    }

    private record Row(long absent, long[] values) {}

    public final Topic topic;
    public String apId = "ap-1";
    public String site = "lab";
    public long bootId = 5;
    public long seq;
    public long t0Us;
    public long tickUs = Settings.TICK_US;
    public long ticks = Settings.BATCH_TICKS;
    public long revision = Settings.SCHEMA_REVISION;
    public long[] missedStart = {};
    public long[] missedTicks = {};
    public long ringDrops;
    public long clockState = 1;
    public long featureHash;
    public List<String> names = List.of("wlan0", "eth0", "fq_codel", "0.1.0");
    public List<Flow> flows = new ArrayList<>();
    private final Map<TableSpec, List<Row>> tables = new LinkedHashMap<>();

    public BatchBuilder(Topic topic, long seq, long t0Us) {
        this.topic = topic;
        this.seq = seq;
        this.t0Us = t0Us;
    }

    public BatchBuilder row(TableSpec table, long... values) {
        return rowAbsent(table, 0, values);
    }

    public BatchBuilder rowAbsent(TableSpec table, long absent, long... values) {
        if (values.length != table.columns().size()) {
            throw new IllegalArgumentException(table.name() + " has " + table.columns().size() + " columns, not "
                    + values.length);
        }
        tables.computeIfAbsent(table, t -> new ArrayList<>()).add(new Row(absent, values));
        return this;
    }

    /** A row of zeros but for the columns named by index. */
    public BatchBuilder sparse(TableSpec table, long... indexAndValue) {
        return sparseAbsent(table, 0, indexAndValue);
    }

    public BatchBuilder sparseAbsent(TableSpec table, long absent, long... indexAndValue) {
        long[] values = new long[table.columns().size()];
        for (int i = 0; i < indexAndValue.length; i += 2) values[(int) indexAndValue[i]] = indexAndValue[i + 1];
        return rowAbsent(table, absent, values);
    }

    public int rows() {
        return tables.values().stream().mapToInt(List::size).sum();
    }

    public byte[] build() {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(header());
        out.writeBytes(body());
        return out.toByteArray();
    }

    public RawBatch record(long kafkaTsMs) {
        return new RawBatch(apId, topic, build(), kafkaTsMs, 0, seq);
    }

    /** Field 1: the header alone. Bodies can be used again under other headers. */
    public byte[] header() {
        ByteArrayOutputStream h = new ByteArrayOutputStream();
        bytes(h, Fields.HEADER_AP_ID, apId.getBytes(StandardCharsets.UTF_8));
        bytes(h, Fields.HEADER_SITE, site.getBytes(StandardCharsets.UTF_8));
        fixed(h, Fields.HEADER_BOOT_ID, bootId);
        number(h, Fields.HEADER_SEQ, seq);
        number(h, Fields.HEADER_T0_US, t0Us);
        number(h, Fields.HEADER_TICK_US, tickUs);
        number(h, Fields.HEADER_TICKS, ticks);
        number(h, Fields.HEADER_SCHEMA_REVISION, revision);
        packed(h, Fields.HEADER_MISSED_START, missedStart);
        packed(h, Fields.HEADER_MISSED_TICKS, missedTicks);
        number(h, Fields.HEADER_RING_DROPS, ringDrops);
        number(h, Fields.HEADER_CLOCK_STATE, clockState);
        for (String n : names) bytes(h, Fields.HEADER_NAMES, n.getBytes(StandardCharsets.UTF_8));
        if (featureHash != 0) fixed(h, Fields.HEADER_FEATURE_HASH, featureHash);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        bytes(out, Fields.BATCH_HEADER, h.toByteArray());
        return out.toByteArray();
    }

    public byte[] body() {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        if (!flows.isEmpty()) bytes(out, Fields.BATCH_FLOWS, dictionary());
        tables.forEach((table, rows) -> bytes(out, table.field(), table(table, rows)));
        return out.toByteArray();
    }

    private byte[] dictionary() {
        ByteArrayOutputStream f = new ByteArrayOutputStream();
        ByteArrayOutputStream ids = new ByteArrayOutputStream();
        for (Flow flow : flows) for (int i = 0; i < 8; i++) ids.write((int) (flow.id >>> 8 * i));
        bytes(f, Fields.FLOWS_FLOW_ID, ids.toByteArray());
        for (Flow flow : flows) bytes(f, Fields.FLOWS_CLIENT_ADDR, flow.client);
        for (Flow flow : flows) bytes(f, Fields.FLOWS_SERVER_ADDR, flow.server);
        packed(f, Fields.FLOWS_CLIENT_PORT, flows.stream().mapToLong(x -> x.clientPort).toArray());
        packed(f, Fields.FLOWS_SERVER_PORT, flows.stream().mapToLong(x -> x.serverPort).toArray());
        packed(f, Fields.FLOWS_PROTOCOL, flows.stream().mapToLong(x -> 6).toArray());
        packed(f, Fields.FLOWS_STATION_MAC, flows.stream().mapToLong(x -> x.stationMac).toArray());
        return f.toByteArray();
    }

    private static byte[] table(TableSpec table, List<Row> rows) {
        List<List<Row>> runs = new ArrayList<>();
        for (Row r : rows) {
            Row before = runs.isEmpty() ? null : runs.get(runs.size() - 1).get(0);
            boolean same = before != null && before.absent == r.absent && Arrays.equals(before.values, 0, table.keys(),
                    r.values, 0, table.keys());
            if (!same) runs.add(new ArrayList<>());
            runs.get(runs.size() - 1).add(r);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        packed(out, Fields.RUN_ROWS, runs.stream().mapToLong(List::size).toArray());
        long[] absent = runs.stream().mapToLong(r -> r.get(0).absent).toArray();
        if (Arrays.stream(absent).anyMatch(a -> a != 0)) packed(out, Fields.RUN_ABSENT, absent);
        for (ColumnSpec c : table.columns()) {
            int i = c.index();
            if (rows.stream().allMatch(r -> r.values[i] == 0)) continue;
            ByteArrayOutputStream stream = new ByteArrayOutputStream();
            if (c.kind() == Kind.KEY) {
                for (List<Row> run : runs) varint(stream, zigzag(run.get(0).values[i]));
            } else {
                long zeros = 0;
                for (List<Row> run : runs) {
                    long before = 0;
                    for (Row r : run) {
                        long delta = r.values[i] - before;
                        before = r.values[i];
                        if (delta == 0) {
                            zeros++;
                            continue;
                        }
                        zeros = flush(stream, zeros);
                        varint(stream, zigzag(delta));
                    }
                }
                flush(stream, zeros);
            }
            bytes(out, c.field(), stream.toByteArray());
        }
        return out.toByteArray();
    }

    private static long flush(ByteArrayOutputStream out, long zeros) {
        if (zeros > 0) {
            varint(out, 0);
            varint(out, zigzag(zeros - 1));
        }
        return 0;
    }

    private static long zigzag(long v) {
        return v << 1 ^ v >> 63;
    }

    public static void varint(ByteArrayOutputStream out, long v) {
        while ((v & ~0x7FL) != 0) {
            out.write((int) (v & 0x7F | 0x80));
            v >>>= 7;
        }
        out.write((int) v);
    }

    public static void bytes(ByteArrayOutputStream out, int field, byte[] payload) {
        varint(out, (long) field << 3 | 2);
        varint(out, payload.length);
        out.writeBytes(payload);
    }

    private static void packed(ByteArrayOutputStream out, int field, long[] values) {
        if (values.length == 0) return;
        ByteArrayOutputStream p = new ByteArrayOutputStream();
        for (long v : values) varint(p, v);
        bytes(out, field, p.toByteArray());
    }

    private static void number(ByteArrayOutputStream out, int field, long v) {
        if (v == 0) return;
        varint(out, (long) field << 3);
        varint(out, v);
    }

    private static void fixed(ByteArrayOutputStream out, int field, long v) {
        varint(out, (long) field << 3 | 1);
        for (int i = 0; i < 8; i++) out.write((int) (v >>> 8 * i));
    }
}
