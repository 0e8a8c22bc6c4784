package oal.stream.neighbour;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.api.operators.KeyedProcessOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Records, timers and state of the operator. */
class NeighbourFunctionTest {
    private static final long T0_MS = 1_800_000_000_000L; // a multiple of the interval
    private static final ObjectMapper JSON = new ObjectMapper();

    private KeyedOneInputStreamOperatorTestHarness<String, ApSecond, NeighbourRecord> harness;

    @BeforeEach
    void open() throws Exception {
        harness = harness();
        harness.open();
    }

    @AfterEach
    void close() throws Exception {
        harness.close();
    }

    private static KeyedOneInputStreamOperatorTestHarness<String, ApSecond, NeighbourRecord> harness()
            throws Exception {
        return new KeyedOneInputStreamOperatorTestHarness<>(new KeyedProcessOperator<>(new NeighbourFunction()),
                ApSecond::channel, Types.STRING);
    }

    private static ApSecond second(String apId, long ms, int airtime) {
        ApSecond s = new ApSecond();
        s.apId = apId;
        s.site = "lab";
        s.frequencyMhz = 5180;
        s.takenMs = T0_MS + ms;
        s.stations = 3;
        s.txKbps = 40_000 + airtime;
        s.txAirtimePermille = airtime;
        s.busyPermille = 700;
        s.lossPermille = 12;
        s.backlogBytes = 123_456;
        return s;
    }

    private void send(ApSecond s) throws Exception {
        harness.processElement(s, s.takenMs);
    }

    /** From each of these in turn, once a second, from {@code from} to before {@code to}. */
    private void send(long from, long to, String... aps) throws Exception {
        for (long ms = from; ms < to; ms += 1000) {
            for (int i = 0; i < aps.length; i++) send(second(aps[i], ms + 10L * i, 100 + i));
        }
    }

    private List<NeighbourRecord> records() {
        return harness.extractOutputValues();
    }

    private List<JsonNode> told() throws Exception {
        List<JsonNode> out = new ArrayList<>();
        for (NeighbourRecord r : records()) out.add(r.json == null ? null : JSON.readTree(r.json));
        return out;
    }

    private static List<String> aps(JsonNode record) {
        List<String> out = new ArrayList<>();
        record.get("aps").forEach(ap -> out.add(ap.get("ap_id").asText()));
        return out;
    }

    @Test
    void aRecordIsWhatWasAgreed() throws Exception {
        send(second("ap-\"1\"", 4000, 50));
        send(second("ap-2", 4500, 300));
        send(second("ap-\"1\"", 5010, 60));
        assertEquals("lab/5180", records().get(0).channel);
        assertEquals("{\"site\":\"lab\",\"frequency_mhz\":5180,\"t_us\":1800000005010000,\"aps\":["
                + "{\"ap_id\":\"ap-2\",\"stations\":3,\"tx_kbps\":40300,\"tx_airtime_permille\":300"
                + ",\"busy_permille\":700,\"loss_permille\":12,\"backlog_bytes\":123456},"
                + "{\"ap_id\":\"ap-\\\"1\\\"\",\"stations\":3,\"tx_kbps\":40060,\"tx_airtime_permille\":60"
                + ",\"busy_permille\":700,\"loss_permille\":12,\"backlog_bytes\":123456}]}",
                new String(records().get(0).json, java.nio.charset.StandardCharsets.UTF_8));
    }

    @Test
    void thereIsOneEveryFiveSecondsAndOnlyWhileSomebodySpeaks() throws Exception {
        send(0, 31_000, "ap-1", "ap-2");
        assertEquals(List.of(5L, 10L, 15L, 20L, 25L, 30L), told().stream()
                .map(r -> (r.get("t_us").asLong() / 1000 - T0_MS) / 1000).toList());
        harness.processWatermark(new Watermark(T0_MS + 40_000));
        assertEquals(6, records().size());
    }

    @Test
    void oneAloneGivesNone() throws Exception {
        send(0, 60_000, "ap-1");
        assertEquals(List.of(), records());
    }

    @Test
    void channelsAndSitesAreKeptApart() throws Exception {
        for (long ms = 0; ms < 20_000; ms += 1000) {
            ApSecond elsewhere = second("ap-2", ms, 1);
            elsewhere.frequencyMhz = 2412;
            ApSecond other = second("ap-3", ms, 1);
            other.site = "hall";
            send(second("ap-1", ms, 1));
            send(elsewhere);
            send(other);
        }
        assertEquals(List.of(), records());
        assertEquals(3, harness.numKeyedStateEntries());
    }

    @Test
    void whoIsSilentForFifteenSecondsIsLeftOut() throws Exception {
        send(0, 10_000, "ap-1", "ap-2", "ap-3");
        send(10_000, 40_500, "ap-1", "ap-2");
        List<List<String>> told = told().stream().map(NeighbourFunctionTest::aps).toList();
        assertEquals(8, told.size());
        // ap-3 was heard at 9.02 s last
        for (int i = 0; i < 8; i++) assertEquals(i < 4 ? List.of("ap-3", "ap-2", "ap-1") : List.of("ap-2", "ap-1"),
                told.get(i), "record " + i);
    }

    @Test
    void whenOneStaysBehindAloneTheRecordIsWithdrawnOnce() throws Exception {
        send(0, 10_000, "ap-1", "ap-2");
        send(10_000, 60_000, "ap-1");
        List<JsonNode> told = told();
        assertEquals(5, told.size()); // at 5, 10, 15 and 20 s, then withdrawn
        assertNull(told.get(4));
        send(60_000, 66_000, "ap-1", "ap-2");
        assertEquals(List.of("ap-2", "ap-1"), aps(told().get(5)), "and comes back");
    }

    @Test
    void aChannelThatFallsSilentIsWithdrawnAndForgotten() throws Exception {
        send(0, 10_000, "ap-1", "ap-2");
        assertEquals(1, harness.numEventTimeTimers());
        harness.processWatermark(new Watermark(T0_MS + 9000 + ChannelState.SILENT_MS));
        assertEquals(1, records().size());
        assertEquals(1, harness.numEventTimeTimers());
        harness.processWatermark(new Watermark(T0_MS + 9011 + ChannelState.SILENT_MS));
        assertEquals(2, records().size());
        assertNull(records().get(1).json);
        assertEquals(0, harness.numKeyedStateEntries());
        assertEquals(0, harness.numEventTimeTimers());
    }

    @Test
    void theBusiestComeFirstAndNoMoreThanSixtyFour() throws Exception {
        for (int i = 0; i < 400; i++) send(second("ap-" + i, 4000, i % 200));
        send(second("ap-0", 5000, 0));
        JsonNode record = told().get(0);
        assertEquals(ChannelState.MAX_PUBLISHED, record.get("aps").size());
        List<Integer> airtime = new ArrayList<>();
        record.get("aps").forEach(ap -> airtime.add(ap.get("tx_airtime_permille").asInt()));
        assertEquals(199, airtime.get(0));
        assertEquals(168, airtime.get(63));
        assertEquals(List.of("ap-199", "ap-399"), aps(record).subList(0, 2));
        assertTrue(records().get(0).json.length < 16_384, records().get(0).json.length + " bytes");
        ChannelState state = new ChannelState();
        for (int i = 0; i < 400; i++) state.add(second("ap-" + i, 4000, i % 200));
        assertEquals(ChannelState.MAX_KNOWN, state.size());
    }

    @Test
    void aSecondThatIsOlderThanWhatIsKnownChangesNothing() throws Exception {
        send(0, 30_000, "ap-1", "ap-2");
        send(second("ap-3", 5000, 999)); // a partition that is far behind
        send(second("ap-2", 27_000, 999));
        send(second("ap-1", 30_100, 5));
        JsonNode last = told().get(told().size() - 1);
        assertEquals(List.of("ap-2", "ap-1"), aps(last));
        assertEquals(101, last.get("aps").get(0).get("tx_airtime_permille").asInt());
    }

    @Test
    void aRestoredStateGoesOnAsIfNothingHadHappened() throws Exception {
        send(0, 12_000, "ap-1", "ap-2");
        OperatorSubtaskState snapshot = harness.snapshot(1, 1);
        close();
        harness = harness();
        harness.initializeState(snapshot);
        harness.open();
        assertEquals(1, harness.numEventTimeTimers());
        send(second("ap-1", 15_000, 7));
        assertEquals(List.of("ap-2", "ap-1"), aps(told().get(0)));
        harness.processWatermark(new Watermark(T0_MS + 60_000));
        assertNull(records().get(1).json, "withdrawn, though the record was told before");
        assertEquals(0, harness.numKeyedStateEntries());
    }

    @Test
    void timersDoNotPileUp() throws Exception {
        for (long ms = 0; ms < 300_000; ms += 1000) {
            send(ms, ms + 1000, "ap-1", "ap-2", "ap-3");
            harness.processWatermark(new Watermark(T0_MS + ms - 5000));
            assertEquals(1, harness.numEventTimeTimers());
        }
        assertEquals(59, records().size());
    }
}
