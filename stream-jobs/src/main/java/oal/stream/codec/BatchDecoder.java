package oal.stream.codec;

import java.util.ArrayList;
import java.util.List;
import oal.schema.Fields;
import oal.schema.Settings;
import oal.schema.TableSpec;
import oal.schema.Tables;
import oal.schema.Topic;

/**
 * Decodes one record at a time into arrays that it reuses: header, flow dictionary and the columns asked for. Refuses
 * what schema/README.md says is refused, in the order of the reference codec. The tables' limits and the record's size
 * limit what it allocates.
 */
public final class BatchDecoder {
    private final BatchHeader header = new BatchHeader();
    private final FlowDictionary flows = new FlowDictionary();
    private final TableRows[] byId = new TableRows[Tables.ALL.size()];
    private final TableRows[][] byTopic = new TableRows[TopicNames.ALL.length][];
    private final Wire outer = new Wire();
    private final Wire inner = new Wire();
    private final int[] from = new int[32];
    private final int[] to = new int[32];

    /** @param wanted per table id the columns to decode; null = all columns, of a table or of all tables */
    private BatchDecoder(boolean[][] wanted) {
        for (TableSpec t : Tables.ALL) {
            if (t.field() >= from.length) throw new IllegalStateException("field number of table " + t.name());
            byId[t.id()] = new TableRows(t, wanted == null ? null : wanted[t.id()]);
        }
        for (Topic topic : TopicNames.ALL) {
            List<TableRows> of = new ArrayList<>();
            for (TableRows t : byId) if (t.spec.topic() == topic) of.add(t);
            byTopic[topic.ordinal()] = of.toArray(TableRows[]::new);
        }
    }

    /** Decodes, and so validates, every column. */
    public static BatchDecoder all() {
        return new BatchDecoder(null);
    }

    /** An argument for {@link #only} with nothing in it yet: {@code [table id][column]}. */
    public static boolean[][] noColumns() {
        boolean[][] wanted = new boolean[Tables.ALL.size()][];
        for (TableSpec t : Tables.ALL) wanted[t.id()] = new boolean[t.columns().size()];
        return wanted;
    }

    /** Decodes only {@code wanted[table id][column]}, for batches that {@link #all()} has accepted before. */
    public static BatchDecoder only(boolean[][] wanted) {
        return new BatchDecoder(wanted);
    }

    public BatchHeader header() {
        return header;
    }

    public FlowDictionary flows() {
        return flows;
    }

    /** Rows of a table of the batch decoded last. */
    public TableRows table(int id) {
        return byId[id];
    }

    /** Tables of a topic. */
    public TableRows[] tables(Topic topic) {
        return byTopic[topic.ordinal()];
    }

    /** Rows of all tables of the batch decoded last. */
    public int rows() {
        int n = 0;
        for (TableRows t : byId) n += t.rows;
        return n;
    }

    public void decode(Topic topic, byte[] data) throws RefusedException {
        for (TableRows t : byId) t.clear();
        flows.clear();
        if (data.length > Settings.MAX_BATCH_BYTES) {
            throw new RefusedException(Refusal.OVERSIZED, data.length + " bytes; at most " + Settings.MAX_BATCH_BYTES);
        }
        TableRows[] tables = byTopic[topic.ordinal()];
        java.util.Arrays.fill(from, -1);
        outer.reset(data, 0, data.length);
        while (outer.more()) {
            outer.next();
            int f = outer.field;
            if (!known(f, topic, tables)) continue;
            if (outer.type != Wire.BYTES || from[f] >= 0) {
                throw RefusedException.malformed("batch: field " + f + " repeated or of wire type " + outer.type);
            }
            from[f] = outer.from;
            to[f] = outer.to;
        }
        if (from[Fields.BATCH_HEADER] < 0) throw RefusedException.malformed("no header");
        span(data, Fields.BATCH_HEADER);
        header.decode(inner);
        if (topic == Topic.PACKETS && from[Fields.BATCH_FLOWS] >= 0) {
            span(data, Fields.BATCH_FLOWS);
            flows.decode(inner);
        }
        for (TableRows t : tables) {
            if (from[t.spec.field()] < 0) continue;
            span(data, t.spec.field());
            t.decode(inner, header, flows.size);
        }
    }

    /** The two checks that need more than the record's bytes. */
    public void check(String key, long nowUs) throws RefusedException {
        if (!header.apId.equals(key)) {
            throw new RefusedException(Refusal.KEY_MISMATCH, "key '" + key + "', ap_id '" + header.apId + "'");
        }
        long ahead = header.t0Us - nowUs;
        if (ahead > Settings.MAX_FUTURE_US || -ahead > Settings.MAX_PAST_US) {
            throw new RefusedException(Refusal.TIME_RANGE, "t0_us is " + ahead / 1000 + " ms from the broker's time");
        }
    }

    private static boolean known(int field, Topic topic, TableRows[] tables) {
        if (field == Fields.BATCH_HEADER || (field == Fields.BATCH_FLOWS && topic == Topic.PACKETS)) return true;
        for (TableRows t : tables) if (t.spec.field() == field) return true;
        return false;
    }

    private void span(byte[] data, int field) {
        inner.reset(data, from[field], to[field]);
    }
}
