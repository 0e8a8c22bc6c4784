package oal.stream.sink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import oal.schema.ClickHouseColumn;
import oal.schema.StreamTables;
import oal.schema.Tables;
import oal.stream.block.JsonForm;
import oal.stream.block.RowBlock;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** One attempt at a time, against a real server. */
@Tag("server")
class ClickHouseClientTest {
    private static ClickHouseServer server;
    private static ClickHouseClient client;

    @BeforeAll
    static void start() throws Exception {
        server = ClickHouseServer.empty();
        client = new ClickHouseClient(server.target());
        server.sql("CREATE TABLE oal.raw (ap_id LowCardinality(String), ts DateTime64(6, 'UTC'), v Nullable(UInt32), "
                + "list Array(Int64))"
                + " ENGINE = MergeTree PARTITION BY toDate(ts) ORDER BY (ap_id, ts) SETTINGS "
                        + "non_replicated_deduplication_window = 1000");
        server.sql("CREATE TABLE oal.sums (ap_id LowCardinality(String), v UInt64, n UInt64)"
                + " ENGINE = SummingMergeTree ORDER BY ap_id SETTINGS non_replicated_deduplication_window = 1000");
        server.sql("CREATE MATERIALIZED VIEW oal.to_sums TO oal.sums AS"
                + " SELECT ap_id, sum(coalesce(v, 0)) AS v, count() AS n FROM oal.raw GROUP BY ap_id");
    }

    /** Rows over several days (partitions) in several blocks, some of them equal to each other. */
    private static Insert insert(String ap, String token, int rows) throws Exception {
        InsertWriter writer = new InsertWriter(SinkLimits.DEFAULT, 0, OptionalLong.empty(),
                new UnregisteredMetricsGroup());
        writer.write(server.block("raw", rows, rowsOf(ap, rows) + " SETTINGS max_block_size = 7"), null);
        Insert made = writer.prepareCommit().iterator().next();
        return new Insert(token, made.table(), made.rows(), made.madeAfter(), made.body());
    }

    private static String rowsOf(String ap, int rows) {
        return "SELECT toLowCardinality('" + ap
                + "') AS ap_id, toDateTime64('2026-03-01 00:00:00', 6, 'UTC') + 3600 * intDiv(number, 2) AS ts,"
                + " if(number % 5 < 2, NULL, toNullable(toUInt32(intDiv(number, 2)))) AS v, [toInt64(intDiv(number, "
                        + "2))] AS list FROM numbers(" + rows + ")";
    }

    private static void assertRows(String ap, int rows) throws Exception {
        assertEquals(rows, server.number("SELECT count() FROM oal.raw WHERE ap_id = '" + ap + "'"));
        assertEquals(rows, server.number("SELECT sum(n) FROM oal.sums WHERE ap_id = '" + ap + "'"), "rollup");
    }

    @Test
    void repeatingAnInsertAddsNothing() throws Exception {
        Insert insert = insert("repeat", "t-repeat", 150);
        for (int i = 0; i < 3; i++) client.insert(insert);
        assertRows("repeat", 150);
        assertEquals(0, client.addMissing(insert));
    }

    @Test
    void equalRowsUnderAnotherTokenAreOtherRows() throws Exception {
        client.insert(insert("other", "t-other-1", 40));
        client.insert(insert("other", "t-other-2", 40));
        assertRows("other", 80);
    }

    @Test
    void rowsThatTheServerLostBehindATokenAreAdded() throws Exception {
        Insert insert = insert("lost", "t-lost", 150);
        client.insert(insert);
        // The state after a kill between deduplication log and part: the token is known, one partition's part is not
        // there. Dropping a partition forgets its tokens, a mutation does not.
        server.sql("ALTER TABLE oal.raw DELETE WHERE ap_id = 'lost' AND toDate(ts) = '2026-03-02' SETTINGS "
                + "mutations_sync = 1");
        client.insert(insert);
        assertEquals(150 - 48, server.number("SELECT count() FROM oal.raw WHERE ap_id = 'lost'"),
                "the token alone drops the repetition");
        assertEquals(48, client.addMissing(insert));
        assertEquals(0, client.addMissing(insert));
        assertEquals(server.sql("SELECT arraySort(groupArray((ts, v, list))) FROM (" + rowsOf("lost", 150) + ")"),
                server.sql("SELECT arraySort(groupArray((ts, v, list))) FROM oal.raw WHERE ap_id = 'lost'"));
    }

    /** An upgrade between an insert and its repetition: the rows are there, with the default of what they lacked. */
    @Test
    void rowsOfBeforeAColumnCameAreNotAddedAgain() throws Exception {
        Insert insert = insert("column", "t-column", 60);
        client.insert(insert);
        server.sql("ALTER TABLE oal.raw ADD COLUMN policy LowCardinality(String) DEFAULT 'rwnd-fair'");
        try {
            client.insert(insert);
            assertEquals(0, client.addMissing(insert));
            assertRows("column", 60);
        } finally {
            server.sql("ALTER TABLE oal.raw DROP COLUMN policy");
        }
    }

    /** Also an insert that a checkpoint of an older job promised: its table is a view by now. */
    @Test
    void rowsOfRewriteAreStoredAsAction() throws Exception {
        server.sql("CREATE TABLE oal.action (" + Tables.ACTION.clickhouse().stream().map(c -> "`" + c.name() + "` "
                + c.type() + Map.of("policy", " DEFAULT 'rwnd-fair'", "kind", " DEFAULT 1").getOrDefault(c.name(), ""))
                .collect(Collectors.joining(", ")) + ") ENGINE = MergeTree PARTITION BY toDate(ts) ORDER BY (ap_id, ts)"
                + " SETTINGS non_replicated_deduplication_window = 1000");
        List<ClickHouseColumn> sent = Tables.REWRITE.clickhouse();
        List<ClickHouseColumn> stored = Tables.REWRITE.stored();
        server.sql("CREATE VIEW oal.rewrite AS SELECT " + IntStream.range(0, sent.size()).mapToObj(i -> "CAST(`"
                + stored.get(i).name() + "` AS " + sent.get(i).type() + ") AS `" + sent.get(i).name() + "`")
                .collect(Collectors.joining(", ")) + " FROM oal.action");
        String columns = sent.stream().map(c -> c.name().equals("ts")
                ? "toDateTime64('2026-03-01 00:00:00', 6, 'UTC') + 3600 * number AS ts"
                : "CAST(toString(number) AS " + c.type() + ") AS `" + c.name() + "`").collect(Collectors.joining(", "));
        InsertWriter writer = new InsertWriter(SinkLimits.DEFAULT, 0, OptionalLong.empty(),
                new UnregisteredMetricsGroup());
        writer.write(server.block("rewrite", 60, "SELECT " + columns + " FROM numbers(60) SETTINGS max_block_size = 7"),
                null);
        Insert insert = writer.prepareCommit().iterator().next();
        assertEquals("rewrite", insert.table());
        for (int i = 0; i < 3; i++) client.insert(insert);
        String rows = "SELECT count(), countIf(policy = 'rwnd-fair' AND kind = 1), sum(subject), sum(value)"
                + " FROM oal.action";
        String all = "60\t60\t1770\t1770";
        assertEquals(all, server.sql(rows));
        server.sql("ALTER TABLE oal.action DELETE WHERE toDate(ts) = '2026-03-02' SETTINGS mutations_sync = 1");
        client.insert(insert);
        assertEquals(24, client.addMissing(insert));
        assertEquals(0, client.addMissing(insert));
        assertEquals(all, server.sql(rows));
    }

    /** Rows of batches and of JSON are in one table, in inserts of their own; each may be lost and is then mended. */
    @Test
    void aTableTakesRowsOfBothForms() throws Exception {
        List<ClickHouseColumn> batches = Tables.SENDER_TCP.clickhouse();
        List<ClickHouseColumn> json = StreamTables.SENDER_TCP;
        String more = json.stream().filter(c -> !batches.contains(c)).map(c -> "`" + c.name() + "` " + c.type()
                + " DEFAULT " + Map.of("host", "ap_id", "clock_offset_us", "0").getOrDefault(c.name(), "4294967295"))
                .collect(Collectors.joining(", "));
        server.sql("CREATE TABLE oal.sender_tcp (" + batches.stream().map(c -> "`" + c.name() + "` " + c.type())
                .collect(Collectors.joining(", ")) + ", " + more + ") ENGINE = MergeTree PARTITION BY toDate(ts)"
                + " ORDER BY (host, ts) SETTINGS non_replicated_deduplication_window = 1000");
        InsertWriter writer = new InsertWriter(SinkLimits.DEFAULT, 0, OptionalLong.empty(),
                new UnregisteredMetricsGroup());
        for (boolean fromJson : new boolean[] {false, true}) {
            String columns = (fromJson ? json : batches).stream().map(c -> c.name().equals("ts")
                    ? "toDateTime64('2026-03-01 00:00:00', 6, 'UTC') + 3600 * number AS ts"
                    : c.type().equals("IPv6") ? "toIPv6('::1') AS " + c.name()
                    : "CAST(toString(number % 9) AS " + c.type() + ") AS `" + c.name() + "`")
                    .collect(Collectors.joining(", "));
            String name = fromJson ? JsonForm.blockName("sender_tcp") : "sender_tcp";
            writer.write(server.block(name, 60, "SELECT " + columns + " FROM numbers(60)"), null);
        }
        List<Insert> inserts = List.copyOf(writer.prepareCommit());
        assertEquals(List.of("sender_tcp", "sender_tcp_json"), inserts.stream().map(Insert::table).toList());
        for (Insert insert : inserts) for (int i = 0; i < 2; i++) client.insert(insert);
        String rows = "SELECT count(), countIf(host = ap_id AND clock_offset_error_us = 4294967295),"
                + " countIf(ap_id = '' AND clock_offset_us < 9) FROM oal.sender_tcp";
        assertEquals("120\t60\t60", server.sql(rows));
        server.sql("ALTER TABLE oal.sender_tcp DELETE WHERE toDate(ts) = '2026-03-02' SETTINGS mutations_sync = 1");
        for (Insert insert : inserts) {
            client.insert(insert);
            assertEquals(24, client.addMissing(insert), insert.table());
            assertEquals(0, client.addMissing(insert), insert.table());
        }
        assertEquals("120\t60\t60", server.sql(rows));
    }

    @Test
    void aSchemaThatDoesNotFitIsRefusedInTheServersWords() throws Exception {
        server.sql("CREATE TABLE oal.narrow (ap_id String) ENGINE = MergeTree ORDER BY ap_id SETTINGS "
                + "non_replicated_deduplication_window = 10");
        Insert insert = insert("x", "t-schema", 3);
        InsertRefusedException unknownColumn = assertThrows(InsertRefusedException.class,
                () -> client.insert(new Insert(insert.token(), "narrow", insert.rows(), -1, insert.body())));
        assertTrue(unknownColumn.getMessage().contains("narrow") && unknownColumn.getMessage()
                .contains("DB::Exception"), unknownColumn.getMessage());
        InsertRefusedException unknownTable = assertThrows(InsertRefusedException.class,
                () -> client.insert(new Insert(insert.token(), "nowhere", insert.rows(), -1, insert.body())));
        assertTrue(unknownTable.getMessage().contains("UNKNOWN_TABLE"), unknownTable.getMessage());
        assertEquals(0, server.number("SELECT count() FROM oal.narrow"));
    }

    /** A half-written part on a full disk gives the same error, so it is not final: it is alarmed. */
    @Test
    void bytesThatAreNotNativeAreTriedAgain() throws Exception {
        InsertWriter writer = new InsertWriter(SinkLimits.DEFAULT, 0, OptionalLong.empty(),
                new UnregisteredMetricsGroup());
        writer.write(new RowBlock("raw", 1, "this is no block".getBytes()), null);
        Insert insert = writer.prepareCommit().iterator().next();
        IOException e = assertThrows(InsertUncertainException.class, () -> client.insert(insert));
        assertTrue(e.getMessage().contains("raw") && e.getMessage().contains("DB::Exception"), e.getMessage());
    }

    @Test
    void aWrongPasswordIsRefused() throws Exception {
        ClickHouseTarget target = server.target();
        ClickHouseTarget nobody = new ClickHouseTarget(target.url(), "oal", "nobody", target.passwordFile(), "",
                Duration.ofSeconds(5));
        InsertRefusedException e = assertThrows(InsertRefusedException.class, () -> new ClickHouseClient(nobody)
                .insert(insert("x", "t", 1)));
        assertTrue(e.getMessage().contains("516"), e.getMessage());
    }

    @Test
    void anAbsentServerIsNoRefusalAndNoDoubt() throws Exception {
        ClickHouseTarget nowhere = new ClickHouseTarget("http://127.0.0.1:1", "oal", "default", "", "",
                Duration.ofSeconds(5));
        InsertUncertainException e = assertThrows(InsertUncertainException.class, () -> new ClickHouseClient(nowhere)
                .insert(insert("x", "t", 1)));
        assertFalse(e.mayHaveArrived);
    }

    @Test
    void aMissingPasswordFileIsNamed() throws Exception {
        ClickHouseTarget target = new ClickHouseTarget(server.target().url(), "oal", "default", "/nowhere/password", "",
                Duration.ofSeconds(5));
        IOException e = assertThrows(IOException.class, () -> new ClickHouseClient(target).insert(insert("x", "t", 1)));
        assertTrue(e.getMessage().contains("/nowhere/password"), e.getMessage());
    }
}
