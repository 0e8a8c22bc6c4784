package oal.stream.codec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import oal.schema.ColumnSpec;
import oal.schema.Kind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The decoder gives the rows that the reference codec gives, and refuses what it refuses, for the same reason. */
class GoldenRowsTest {
    private static final long NOW_US = 1_800_000_000_000_000L;

    @ParameterizedTest
    @ValueSource(strings = {"extremes", "features", "actions", "refresh", "senders", "sessions"})
    void rowsAreThoseOfTheReference(String name) throws RefusedException {
        List<String> want = Golden.lines(name + ".rows.txt");
        List<String> got = new ArrayList<>();
        BatchDecoder decoder = BatchDecoder.all();
        for (Golden.Record r : Golden.records(name)) {
            if (got.size() >= want.size()) break;
            decoder.decode(r.topic(), r.data());
            dump(decoder, r, got);
        }
        assertEquals(want.size(), got.size());
        for (int i = 0; i < want.size(); i++) assertEquals(want.get(i), got.get(i), name + ".rows.txt line " + (i + 1));
    }

    @Test
    void refusesWhatTheReferenceRefuses() {
        List<String> reasons = Golden.lines("refused.txt");
        List<Golden.Record> records = Golden.records("refused");
        assertEquals(reasons.size(), records.size());
        BatchDecoder decoder = BatchDecoder.all();
        for (int i = 0; i < records.size(); i++) {
            Golden.Record r = records.get(i);
            RefusedException e = assertThrows(RefusedException.class, () -> {
                decoder.decode(r.topic(), r.data());
                decoder.check("ap-1", NOW_US);
            }, "record " + i);
            assertEquals(reasons.get(i), e.reason.label(), "record " + i + ": " + e.getMessage());
        }
    }

    @Test
    void aSelectionOfColumnsGivesTheSameValues() throws RefusedException {
        boolean[][] wanted = BatchDecoder.noColumns();
        for (boolean[] columns : wanted) for (int c = 0; c < columns.length; c += 2) columns[c] = true;
        BatchDecoder all = BatchDecoder.all();
        BatchDecoder some = BatchDecoder.only(wanted);
        for (Golden.Record r : Golden.records("extremes")) {
            all.decode(r.topic(), r.data());
            some.decode(r.topic(), r.data());
            for (TableRows t : some.tables(r.topic())) {
                TableRows full = all.table(t.spec.id());
                assertEquals(full.rows, t.rows);
                for (ColumnSpec c : t.spec.columns()) {
                    if (!wanted[t.spec.id()][c.index()]) {
                        assertThrows(IllegalStateException.class, () -> t.column(c.index()));
                        continue;
                    }
                    int n = c.kind() == Kind.KEY ? t.runs : t.rows;
                    for (int i = 0; i < n; i++) assertEquals(full.column(c.index())[i], t.column(c.index())[i]);
                }
            }
        }
    }

    private static void dump(BatchDecoder d, Golden.Record r, List<String> out) {
        BatchHeader h = d.header();
        out.add(String.join(" ", "batch", "" + r.topic().ordinal(), h.apId, h.site.isEmpty() ? "-" : h.site,
                Long.toUnsignedString(h.bootId),
                "" + h.seq, "" + h.t0Us, "" + h.tickUs, "" + h.ticks, "" + d.rows()));
        FlowDictionary f = d.flows();
        HexFormat hex = HexFormat.of();
        for (int i = 0; i < f.size; i++) {
            out.add(String.join(" ", "flow", Long.toUnsignedString(f.flowId[i]),
                    hex.formatHex(f.data, f.clientAddr[i], f.clientAddr[i] + f.addrBytes[i]),
                    hex.formatHex(f.data, f.serverAddr[i], f.serverAddr[i] + f.addrBytes[i]),
                    "" + f.clientPort[i], "" + f.serverPort[i], "" + f.protocol[i], "" + f.stationMac[i]));
        }
        for (TableRows t : d.tables(r.topic())) {
            long[] ts = t.timesUs(h);
            int i = 0;
            for (int run = 0; run < t.runs; run++) {
                for (int k = 0; k < t.runRows[run]; k++, i++) {
                    StringBuilder line = new StringBuilder(t.spec.name()).append(' ').append(ts[i]).append(' ')
                            .append(t.runAbsent[run]);
                    for (ColumnSpec c : t.spec.columns()) {
                        if (c.kind() == Kind.TICK || c.kind() == Kind.TIME_US) continue;
                        line.append(' ').append(t.column(c.index())[c.kind() == Kind.KEY ? run : i]);
                    }
                    out.add(line.toString());
                }
            }
        }
    }
}
