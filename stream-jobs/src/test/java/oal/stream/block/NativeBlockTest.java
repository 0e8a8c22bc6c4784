package oal.stream.block;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import oal.schema.ClickHouseColumn;
import oal.schema.ColumnSpec;
import oal.schema.Kind;
import oal.schema.TableSpec;
import oal.schema.Tables;
import oal.schema.Type;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.FlowDictionary;
import oal.stream.codec.Golden;
import oal.stream.codec.TableRows;
import oal.stream.item.Item;
import oal.stream.item.ItemRows;
import oal.stream.prediction.Decision;
import oal.stream.prediction.Outcome;
import oal.stream.prediction.PredictionRows;
import oal.stream.sink.ClickHouseServer;
import oal.stream.sink.ClickHouseTarget;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Blocks are read by a real ClickHouse as what was written, column by column. */
@Tag("server")
class NativeBlockTest {
    private static ClickHouseServer server;

    @BeforeAll
    static void start() throws Exception {
        server = ClickHouseServer.empty();
    }

    /** Insert as the sink does: no column list. */
    private static void insert(String table, byte[] data) throws Exception {
        ClickHouseTarget target = server.target();
        String password = Files.readString(Path.of(target.passwordFile())).strip();
        var response = HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(URI.create(target.url() + "/?query=INSERT%20INTO%20oal.blocks_" + table
                + "%20FORMAT%20Native"))
                .header("X-ClickHouse-User", target.user()).header("X-ClickHouse-Key", password)
                        .POST(BodyPublishers.ofByteArray(data)).build(), BodyHandlers.ofString());
        assertEquals(200, response.statusCode(), response.body());
    }

    private static void create(String table, List<ClickHouseColumn> columns) throws Exception {
        server.sql("CREATE TABLE oal.blocks_" + table + " (" + columns.stream()
                .map(c -> "`" + c.name() + "` " + c.type()).collect(Collectors.joining(", ")) + ") ENGINE = Memory");
    }

    @Test
    void everyRawTable() throws Exception {
        for (TableSpec t : Tables.ALL) {
            create(t.name(), t.clickhouse());
            RawRows rows = new RawRows(t);
            BatchDecoder decoder = BatchDecoder.all();
            List<String> want = new ArrayList<>();
            // The first has every table of revision 2, the others those that came later.
            List<Golden.Record> records = new ArrayList<>(Golden.records("extremes"));
            records.addAll(Golden.records("actions"));
            records.addAll(Golden.records("refresh"));
            records.addAll(Golden.records("senders"));
            for (Golden.Record r : records) {
                if (r.topic() != t.topic()) continue;
                decoder.decode(r.topic(), r.data());
                rows.add(decoder);
                dump(decoder, t, want);
            }
            assertTrue(want.size() >= 20, t.name() + " has " + want.size() + " golden rows");
            RowBlock block = rows.writer.drain();
            assertEquals(want.size(), block.rows);
            insert(t.name(), block.data);
            // Everything as numbers or text that both sides can write.
            String select = t.clickhouse().stream().map(c -> switch (c.type()) {
                case "IPv6" -> "lower(hex(" + c.name() + "))";
                default -> c.type().startsWith("DateTime64") ? "toUnixTimestamp64Micro(" + c.name() + ")"
                        : "`" + c.name() + "`";
            }).collect(Collectors.joining(", "));
            String got = server.sql("SELECT " + select + " FROM oal.blocks_" + t.name());
            assertEquals(String.join("\n", want), got, t.name());
        }
    }

    @Test
    void blocksOfOneTableCanBeConcatenated() throws Exception {
        create("joined", Tables.STATION.clickhouse());
        RawRows rows = new RawRows(Tables.STATION);
        BatchDecoder decoder = BatchDecoder.all();
        var out = new java.io.ByteArrayOutputStream();
        int n = 0;
        for (int i = 0; i < 3; i++) {
            Golden.Record r = Golden.records("extremes").get(0);
            decoder.decode(r.topic(), r.data());
            rows.add(decoder);
            RowBlock block = rows.writer.drain();
            n += block.rows;
            out.write(block.data);
        }
        insert("joined", out.toByteArray());
        assertEquals(n, server.number("SELECT count() FROM oal.blocks_joined"));
    }

    @Test
    void derivedTables() throws Exception {
        create("item", oal.schema.StreamTables.ITEM);
        ItemRows rows = new ItemRows();
        Item item = new Item();
        item.tsUs = 1_800_000_000_123_456L;
        item.bootId = -1;
        item.features = new long[] {1, Long.MIN_VALUE, -3};
        item.classNow = 1;
        item.classThen = 3;
        item.lossRatio = 0.25f;
        item.offeredPkts = 77;
        item.complete = true;
        item.permilleResent = 250;
        item.sinceDropUs = Item.NONE;
        item.untilDropUs = 1_199_999;
        for (int i = 0; i < 300; i++) {
            rows.add("ap-" + i, i % 2 == 0 ? "" : "lab", "rwnd-fair", 0xFEDCBA9876543210L, item);
        }
        insert("item", rows.writer.drain().data);
        assertEquals("300\t300\t2",
                server.sql("SELECT count(), uniqExact(ap_id), uniqExact(site) FROM oal.blocks_item"));
        assertEquals("ap-299\tlab\t2027-01-15 08:00:00.123456\t18446744073709551615\t18364758544493064720"
                + "\t[1,-9223372036854775808,-3]\t200000\tAcceptable\tBad\t0.25\t77\t1\trwnd-fair\tno\tno"
                + "\t250\t0\t-1\t1199999",
                server.sql("SELECT * FROM oal.blocks_item WHERE ap_id = 'ap-299'"));
    }

    @Test
    void predictionsWithAndWithoutTheirItem() throws Exception {
        create("prediction", oal.schema.StreamTables.PREDICTION);
        PredictionRows rows = new PredictionRows();
        Decision d = new Decision();
        d.instantUs = 1_800_000_000_100_000L;
        d.bootId = -1;
        d.bundle = Long.MAX_VALUE;
        d.source = 1;
        d.version = 4_294_967_295L;
        d.predicted = 3;
        d.confidencePermille = 1000;
        d.leaf = 65535;
        d.featuresMissing = 255;
        d.evalNs = 17;
        d.sameProgram = true;
        rows.add("ap-1", "lab", "rwnd-fair", d, null);
        rows.add("ap-1", "lab", "example", d, new Outcome(-1, d.instantUs, 1, 2, true, false, false, -1, 40, 0, 0));
        rows.add("ap-1", "lab", "example", d, new Outcome(-1, d.instantUs, 1, 2, false, true, true, 5, 6, 7, 0));
        insert("prediction", rows.writer.drain().data);
        String same = "ap-1\tlab\t2027-01-15 08:00:00.100000\t18446744073709551615\t9223372036854775807"
                + "\tregistry\t4294967295\tBad\t1000\t0\t65535\t255\t17\t";
        assertEquals(same + "unknown\tunknown\t0\tunknown\trwnd-fair\tunknown\t\\N\t\\N\n" + same
                + "Acceptable\tPoor\t0\tlacked input\texample\tyes\t5\t6\n" + same
                + "Acceptable\tPoor\t1\tsame\texample\tno\t-1\t40",
                server.sql("SELECT * FROM oal.blocks_prediction ORDER BY complete, class"));
    }

    @Test
    void floatsOfBothWidths() throws Exception {
        List<ClickHouseColumn> columns = List.of(new ClickHouseColumn("narrow", "Float32"),
                new ClickHouseColumn("wide", "Float64"));
        create("floats", columns);
        NativeBlockWriter w = new NativeBlockWriter("floats", columns);
        w.number(0).add(0.5f);
        w.number(1).add(0.1);
        w.number(0).add(Float.NaN);
        w.number(1).add(Double.NaN);
        insert("floats", w.drain().data);
        assertEquals("0.5\t0.1\nnan\tnan", server.sql("SELECT * FROM oal.blocks_floats"));
    }

    @Test
    void columnsOfDifferentLengthAreAnError() {
        NativeBlockWriter w = new NativeBlockWriter("t", List.of(new ClickHouseColumn("a", "UInt8"),
                new ClickHouseColumn("b", "String")));
        w.number(0).add(1);
        w.number(0).add(2);
        w.string(1).add("x");
        assertTrue(assertThrows(IllegalStateException.class, w::drain).getMessage()
                .contains("t.b has 1 values for 2 rows"));
    }

    private static void dump(BatchDecoder d, TableSpec spec, List<String> out) {
        TableRows t = d.table(spec.id());
        long[] ts = t.timesUs(d.header());
        int i = 0;
        for (int run = 0; run < t.runs; run++) {
            for (int k = 0; k < t.runRows[run]; k++, i++) {
                List<String> f = new ArrayList<>(List.of(d.header().apId, "" + ts[i],
                        Long.toUnsignedString(d.header().bootId), "" + d.header().seq));
                for (ColumnSpec c : spec.columns()) {
                    if (c.kind() == Kind.TICK || c.kind() == Kind.TIME_US) continue;
                    long v = t.column(c.index())[c.kind() == Kind.KEY ? run : i];
                    if (c.type() == Type.FLOW) {
                        FlowDictionary flows = d.flows();
                        int n = (int) v;
                        f.add(Long.toUnsignedString(flows.flowId[n]));
                        f.add(address(flows, flows.clientAddr[n], n));
                        f.add(address(flows, flows.serverAddr[n], n));
                        f.add("" + flows.clientPort[n]);
                        f.add("" + flows.serverPort[n]);
                        f.add("" + flows.stationMac[n]);
                    } else if (c.type() == Type.NAME) {
                        f.add(d.header().name((int) v));
                    } else {
                        f.add(t.absent(run, c.optional()) ? "\\N" : "" + v);
                    }
                }
                out.add(String.join("\t", f));
            }
        }
    }

    private static String address(FlowDictionary flows, int at, int n) {
        String hex = HexFormat.of().formatHex(flows.data, at, at + flows.addrBytes[n]);
        return flows.addrBytes[n] == 4 ? "00000000000000000000ffff" + hex : hex;
    }
}
