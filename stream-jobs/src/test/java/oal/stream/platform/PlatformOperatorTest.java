package oal.stream.platform;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import oal.stream.block.NativeReader;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.JsonRecord;
import oal.stream.operator.BlockOperator;
import oal.stream.operator.PipelineSettings;
import oal.stream.operator.SideOutput;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class PlatformOperatorTest {
    private static final long NOW_MS = PlatformRecords.TS_US / 1000;

    private OneInputStreamOperatorTestHarness<JsonRecord, DeadLetter> harness;
    private long offset;

    @BeforeEach
    void open() throws Exception {
        harness = new OneInputStreamOperatorTestHarness<>(new PlatformOperator(PipelineSettings.DEFAULT));
        harness.open();
    }

    @AfterEach
    void close() throws Exception {
        harness.close();
    }

    private void send(byte[] value) throws Exception {
        harness.processElement(new JsonRecord("k", value, NOW_MS, 2, offset++), NOW_MS);
    }

    private List<Map<String, String>> rows(String table) throws Exception {
        harness.prepareSnapshotPreBarrier(1);
        return NativeReader.rows(SideOutput.of(harness, BlockOperator.ROWS), table);
    }

    @Test
    void rowsAreThoseOfTheRecord() throws Exception {
        send(PlatformRecords.json("rollout", List.of(PlatformRecords.ROLLOUT,
                PlatformRecords.with(PlatformRecords.ROLLOUT, "value", null, "limit", "3", "step", "\"aborted\""))));
        send(PlatformRecords.json("sender_tcp", PlatformRecords.SENDER_TCP));
        List<Map<String, String>> rollouts = rows("rollout");
        assertEquals(2, rollouts.size());
        Map<String, String> first = rollouts.get(0);
        assertEquals(Long.toString(PlatformRecords.TS_US), first.get("ts"));
        assertEquals("canary", first.get("slot"));
        assertEquals("9223372036854775807", first.get("bundle"));
        assertEquals("4294967295", first.get("applied"));
        assertEquals("", first.get("metric"));
        assertEquals("0.25", first.get("value"));
        assertEquals("NaN", first.get("limit"));
        assertEquals("a \"word\" ✓", first.get("detail"));
        assertEquals("NaN", rollouts.get(1).get("value"), "a float that is left out");
        assertEquals("3.0", rollouts.get(1).get("limit"), "an integer is a number");
        assertEquals("aborted", rollouts.get(1).get("step"));
        Map<String, String> tcp = rows("sender_tcp_json").get(0);
        assertEquals("18446744073709551615", tcp.get("flow_id"));
        assertEquals("-17", tcp.get("clock_offset_us"));
        assertEquals(List.of(), harness.extractOutputValues());
    }

    @Test
    void keysMayStandInAnyOrderAndRowsMayBeNone() throws Exception {
        String record = new String(PlatformRecords.json("rollout", PlatformRecords.ROLLOUT), StandardCharsets.UTF_8);
        String rows = record.substring(record.indexOf("\"rows\""), record.length() - 1);
        send(("{" + rows + ", \"table\": \"rollout\"}").getBytes(StandardCharsets.UTF_8));
        send("{\"table\": \"release\", \"rows\": []}".getBytes(StandardCharsets.UTF_8));
        assertEquals(1, rows("rollout").size());
        assertEquals(List.of(), harness.extractOutputValues());
    }

    static Stream<Arguments> refused() {
        Map<String, String> good = PlatformRecords.ROLLOUT;
        Map<String, String> tcp = PlatformRecords.SENDER_TCP;
        return Stream.of(
                Arguments.of("malformed", "no table 'station'; there are feature_drift, release, rollout, sender_tcp, "
                        + "settled_transaction, tree_decision",
                        PlatformRecords.json("station", good)),
                Arguments.of("malformed", "rollout has no column 'wings'",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "wings", "2"))),
                Arguments.of("malformed", "rollout.detail is missing",
                        PlatformRecords.json("rollout", List.of(good, PlatformRecords.with(good, "detail", null)))),
                Arguments.of("malformed", "rollout.aps is missing",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "aps", "null"))),
                Arguments.of("malformed", "rollout.ts is missing",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "ts", null))),
                Arguments.of("malformed", "rollout.aps must be an integer, not a string",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "aps", "\"10\""))),
                Arguments.of("malformed", "rollout.aps must be an integer, not a number with a fraction",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "aps", "10.0"))),
                Arguments.of("malformed", "rollout.detail must be a string, not an object",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "detail", "{}"))),
                Arguments.of("malformed", "rollout.value must be a number, or null for NaN, not a boolean",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "value", "true"))),
                Arguments.of("malformed", "NaN",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "value", "NaN"))),
                Arguments.of("value_range", "rollout.step is 'sideways'; it has to be one of aborted, ",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "step", "\"sideways\""))),
                Arguments.of("value_range", "rollout.aps is -1; it has to be within 0 … 4294967295",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "aps", "-1"))),
                Arguments.of("value_range", "rollout.aps is 4294967296",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "aps", "4294967296"))),
                Arguments.of("value_range", "sender_tcp.flow_id is 18446744073709551616",
                        PlatformRecords.json("sender_tcp",
                        PlatformRecords.with(tcp, "flow_id", "18446744073709551616"))),
                Arguments.of("value_range", "sender_tcp.flow_id is a number of ",
                        PlatformRecords.json("sender_tcp", PlatformRecords.with(tcp, "flow_id", "9".repeat(900)))),
                Arguments.of("value_range", "too large for its type",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "value", "1e999"))),
                Arguments.of("value_range", "before 2100",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "ts", "9000000000000000000"))),
                Arguments.of("time_range", "rollout.ts is 3600000 ms from the broker's time",
                        PlatformRecords.json("rollout",
                        PlatformRecords.with(good, "ts", Long.toString(PlatformRecords.TS_US + 3_600_000_000L)))),
                Arguments.of("time_range", "rollout.ts is -",
                        PlatformRecords.json("rollout", PlatformRecords.with(good, "ts", "1000"))),
                Arguments.of("malformed", "\"rows\" must be an array", text("{\"table\": \"rollout\", \"rows\": {}}")),
                Arguments.of("malformed", "a row must be an object", text("{\"table\": \"rollout\", \"rows\": [7]}")),
                Arguments.of("malformed", "the record has no \"rows\"", text("{\"table\": \"rollout\"}")),
                Arguments.of("malformed", "the record has no \"table\"", text("{\"rows\": []}")),
                Arguments.of("malformed", "\"table\" must be a string", text("{\"table\": 3, \"rows\": []}")),
                Arguments.of("malformed", "and no 'more'", text("{\"table\": \"rollout\", \"rows\": [], \"more\": 1}")),
                Arguments.of("malformed", "Duplicate field 'rows'",
                        text("{\"table\": \"rollout\", \"rows\": [], \"rows\": []}")),
                Arguments.of("malformed", "something follows", text("{\"table\": \"rollout\", \"rows\": []} {}")),
                Arguments.of("malformed", "the record must be an object", text("[]")),
                Arguments.of("malformed", "the record must be an object", new byte[0]),
                Arguments.of("malformed", "Unexpected end-of-input", text("{\"table\": \"rollout\", \"rows\": [{")),
                Arguments.of("malformed", "UTF-8", new byte[] {'{', '"', 't', 'a', 'b', 'l', 'e', '"', ':', '"',
                        (byte) 0xC3, '(', '"', '}'}),
                Arguments.of("malformed", "depth", text("{\"x\": " + "[".repeat(5000) + "]".repeat(5000) + "}")),
                Arguments.of("oversized", "1048577 bytes; at most 1048576", new byte[1048577]));
    }

    private static byte[] text(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @MethodSource("refused")
    void aBadRecordIsADeadLetterAndTakesNothingWithIt(String reason, String detail, byte[] value) throws Exception {
        send(PlatformRecords.json("rollout", PlatformRecords.ROLLOUT));
        send(value);
        send(PlatformRecords.json("rollout", PlatformRecords.ROLLOUT));
        assertEquals(2, rows("rollout").size(), "the good ones before and after, and no row of the bad one");
        List<DeadLetter> letters = harness.extractOutputValues();
        assertEquals(1, letters.size());
        DeadLetter letter = letters.get(0);
        assertEquals(reason, letter.reason, letter.detail);
        assertTrue(letter.detail.contains(detail), letter.detail);
        assertArrayEquals(value, letter.value);
        assertEquals("platform.events.v1 2 1 k", letter.topic + " " + letter.partition + " " + letter.offset + " "
                + letter.key);
        Map<String, String> row = rows("dead_letter").get(0);
        assertEquals("platform.events.v1 " + reason, row.get("topic") + " " + row.get("reason"));
    }

    @Test
    void noBytesStopTheJob() throws Exception {
        Random random = new Random(11);
        byte[] good = PlatformRecords.json("sender_tcp", PlatformRecords.SENDER_TCP);
        int rounds = 20_000;
        for (int i = 0; i < rounds; i++) {
            byte[] bad = good.clone();
            for (int k = random.nextInt(4); k >= 0; k--) {
                bad[random.nextInt(bad.length)] = random.nextBoolean() ? (byte) random.nextInt(256)
                        : good[random.nextInt(good.length)];
            }
            send(bad);
        }
        assertEquals(rounds, rows("sender_tcp_json").size() + rows("dead_letter").size());
    }
}
