package oal.stream.decode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.access.AccessChange;
import oal.stream.access.Revocations;
import oal.stream.block.NativeReader;
import oal.stream.block.RowBlock;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.RawBatch;
import oal.stream.operator.KeyedBlockOperator;
import oal.stream.operator.PipelineSettings;
import oal.stream.operator.SideOutput;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.util.KeyedTwoInputStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class DecodeOperatorTest {
    private static final long T0_US = 1_800_000_000_000_000L;
    private static final long NOW_MS = T0_US / 1000;
    private static final PipelineSettings SETTINGS = PipelineSettings.DEFAULT.withStateTtl(Duration.ofMinutes(1));

    private KeyedTwoInputStreamOperatorTestHarness<String, RawBatch, AccessChange, AcceptedBatch> harness;

    @BeforeEach
    void open() throws Exception {
        harness = harness();
        harness.open();
    }

    @AfterEach
    void close() throws Exception {
        harness.close();
    }

    private static KeyedTwoInputStreamOperatorTestHarness<String, RawBatch, AccessChange, AcceptedBatch> harness()
            throws Exception {
        return new KeyedTwoInputStreamOperatorTestHarness<>(new DecodeOperator(SETTINGS, Revocations::new), b -> b.key,
                null, Types.STRING);
    }

    private static BatchBuilder batch(long seq) {
        return new BatchBuilder(Topic.SAMPLES, seq, T0_US + seq * 252_000)
                .sparse(Tables.STATION, Tables.Station.MAC, 1, Tables.Station.TX_PKTS, seq)
                .sparse(Tables.STATION, Tables.Station.MAC, 1, Tables.Station.TICK, 5, Tables.Station.TX_PKTS, seq + 1);
    }

    private void send(RawBatch b) throws Exception {
        harness.processElement1(b, b.kafkaTsMs);
    }

    private void send(long... seqs) throws Exception {
        for (long s : seqs) send(batch(s).record(NOW_MS + s));
    }

    private List<RowBlock> rows() throws Exception {
        harness.prepareSnapshotPreBarrier(1);
        return SideOutput.of(harness, KeyedBlockOperator.ROWS);
    }

    private List<Map<String, String>> rows(String table) throws Exception {
        return NativeReader.rows(rows(), table);
    }

    private List<DeadLetter> deadLetters() {
        return SideOutput.of(harness, DecodeOperator.DEAD_LETTERS);
    }

    @Test
    void rowsBatchesAndBytesGoOn() throws Exception {
        send(0, 1);
        assertEquals(2, harness.extractOutputValues().size());
        AcceptedBatch b = harness.extractOutputValues().get(1);
        assertEquals("ap-1", b.apId);
        assertEquals(1, b.seq);
        assertEquals(T0_US + 252_000, b.t0Us);
        assertEquals(T0_US + 504_000, b.endUs);
        assertArrayEquals(batch(1).build(), b.value);
        List<Map<String, String>> station = rows("station");
        assertEquals(4, station.size());
        assertEquals(Long.toString(T0_US + 252_000 + 5 * 4000), station.get(3).get("ts"));
        assertEquals("2", station.get(3).get("tx_pkts"));
        Map<String, String> row = rows("batch").get(1);
        assertEquals("ap.samples.v1", row.get("topic"));
        assertEquals("2", row.get("rows"));
        assertEquals(Integer.toString(batch(1).build().length), row.get("bytes"));
        assertEquals(Long.toString(NOW_MS + 1), row.get("kafka_ts"));
        assertEquals(List.of(), rows("gap"));
    }

    @Test
    void gapsAreToldAndDuplicatesDropped() throws Exception {
        send(0, 3, 1, 3, 4);
        List<String> gaps = rows("gap").stream().map(g -> g.get("kind") + " " + g.get("from_seq") + " "
                + g.get("to_seq") + " " + g.get("batches")).toList();
        assertEquals(List.of("missing 1 2 2", "reordered 1 1 1", "duplicate 3 3 1"), gaps);
        assertEquals(List.of(0L, 3L, 1L, 4L), harness.extractOutputValues().stream().map(b -> b.seq).toList());
        assertEquals(4 * 2, rows("station").size());
    }

    @Test
    void aRebootIsTold() throws Exception {
        send(8, 9);
        BatchBuilder b = batch(0);
        b.bootId = 77;
        b.t0Us = T0_US + 10_000_000;
        send(b.record(NOW_MS));
        assertEquals(List.of("reboot 77"), rows("gap").stream().map(g -> g.get("kind") + " " + g.get("boot_id"))
                .toList());
        assertEquals(3, harness.extractOutputValues().size());
    }

    @Test
    void whatTheContractRefusesIsKeptWhole() throws Exception {
        RawBatch truncated = batch(0).record(NOW_MS);
        truncated.value = java.util.Arrays.copyOf(truncated.value, truncated.value.length - 3);
        RawBatch oversized = new RawBatch("ap-1", Topic.SAMPLES, new byte[Settings.MAX_BATCH_BYTES + 1], NOW_MS, 2, 3);
        RawBatch empty = new RawBatch(null, Topic.SAMPLES, null, NOW_MS, 0, 0);
        RawBatch foreign = batch(0).record(NOW_MS);
        foreign.key = "ap-2";
        BatchBuilder revision = batch(0);
        revision.revision = Settings.SCHEMA_REVISION + 1;
        BatchBuilder future = batch(0);
        future.t0Us = NOW_MS * 1000 + Settings.MAX_FUTURE_US + 1;
        BatchBuilder past = batch(0);
        past.t0Us = NOW_MS * 1000 - Settings.MAX_PAST_US - 1;
        List<RawBatch> bad = List.of(truncated, oversized, empty, foreign, revision.record(NOW_MS),
                future.record(NOW_MS), past.record(NOW_MS));
        for (RawBatch b : bad) send(b);
        send(0); // nothing else is lost with them
        List<String> reasons = List.of("truncated", "oversized", "malformed", "key_mismatch", "unknown_revision",
                "time_range", "time_range");
        assertEquals(reasons, deadLetters().stream().map(d -> d.reason).toList());
        assertEquals(reasons, rows("dead_letter").stream().map(r -> r.get("reason")).toList());
        for (int i = 0; i < bad.size(); i++) {
            assertArrayEquals(bad.get(i).value, deadLetters().get(i).value);
            assertEquals(Integer.toString(bad.get(i).value.length), rows("dead_letter").get(i).get("bytes"));
            assertTrue(!deadLetters().get(i).detail.isEmpty());
        }
        assertEquals(1, harness.extractOutputValues().size());
        assertEquals(List.of(), rows("gap"));
    }

    @Test
    void justInsideTheTimeRangeIsAccepted() throws Exception {
        BatchBuilder future = batch(0);
        future.t0Us = NOW_MS * 1000 + Settings.MAX_FUTURE_US;
        BatchBuilder past = batch(1);
        past.t0Us = NOW_MS * 1000 - Settings.MAX_PAST_US;
        send(future.record(NOW_MS));
        send(past.record(NOW_MS));
        assertEquals(2, harness.extractOutputValues().size());
    }

    @Test
    void eventsEndInTheirTable() throws Exception {
        send(new BatchBuilder(Topic.EVENTS, 0, T0_US).sparse(Tables.HEALTH, Tables.Health.TICK, 1, Tables.Health.TICKS,
                250).record(NOW_MS));
        assertEquals(0, harness.extractOutputValues().size());
        assertEquals("250", rows("health").get(0).get("ticks"));
        assertEquals("ap.events.v1", rows("batch").get(0).get("topic"));
    }

    @Test
    void rowsLeaveWithoutACheckpointAfterTheFlushInterval() throws Exception {
        send(0);
        assertTrue(harness.getSideOutput(KeyedBlockOperator.ROWS) == null);
        harness.setProcessingTime(harness.getProcessingTime() + SETTINGS.flush().toMillis());
        assertTrue(harness.getSideOutput(KeyedBlockOperator.ROWS).size() >= 2, "station and batch");
        int before = harness.getSideOutput(KeyedBlockOperator.ROWS).size();
        send(1);
        harness.setProcessingTime(harness.getProcessingTime() + SETTINGS.flush().toMillis());
        assertEquals(2 * before, harness.getSideOutput(KeyedBlockOperator.ROWS).size(), "and again");
    }

    @Test
    void whatCameBeforeACheckpointIsKnownAfterIt() throws Exception {
        send(0, 1, 4);
        harness.prepareSnapshotPreBarrier(1);
        OperatorSubtaskState snapshot = harness.snapshot(1, 1);
        harness.close();
        harness = harness();
        harness.initializeState(snapshot);
        harness.open();
        send(4, 2, 5);
        assertEquals(List.of("duplicate 4", "reordered 2"), rows("gap").stream()
                .map(g -> g.get("kind") + " " + g.get("from_seq")).toList());
        assertEquals(List.of(2L, 5L), harness.extractOutputValues().stream().map(b -> b.seq).toList());
    }

    @Test
    void stateOfASilentApIsDropped() throws Exception {
        send(0, 1);
        assertEquals(1, harness.numKeyedStateEntries());
        assertEquals(1, harness.numEventTimeTimers());
        harness.processWatermark1(new Watermark(NOW_MS + 50_000));
        send(batch(2).record(NOW_MS + 50_000));
        harness.processWatermark1(new Watermark(NOW_MS + 70_000)); // it spoke meanwhile
        assertEquals(1, harness.numKeyedStateEntries());
        harness.processWatermark1(new Watermark(NOW_MS + 120_000));
        assertEquals(0, harness.numKeyedStateEntries());
        assertEquals(0, harness.numEventTimeTimers());
    }

    /** A minute and a second ahead: every batch of full traffic is refused, for ten minutes. */
    @Test
    void anApWhoseClockIsAheadIsCountedExactlyAndCopiedABit() throws Exception {
        int batches = 4 * 600;
        long sent = 0;
        for (int s = 0; s < batches; s++) {
            BatchBuilder b = batch(s);
            b.t0Us += 61_000_000;
            for (int i = 0; i < 400; i++) {
                b.sparse(Tables.STATION, Tables.Station.MAC, i * 77_777_777L, Tables.Station.TX_PKTS, s * 99_991L);
            }
            RawBatch record = b.record(NOW_MS + s * 252);
            sent += record.value.length;
            harness.setProcessingTime(NOW_MS + s * 252);
            send(record);
        }
        List<Map<String, String>> rows = rows("dead_letter");
        assertEquals(batches, rows.size());
        assertEquals(sent, rows.stream().mapToLong(row -> Long.parseLong(row.get("bytes"))).sum());
        long copied = SideOutput.of(harness, DecodeOperator.DEAD_LETTERS).stream().mapToLong(d -> d.value.length).sum();
        long notCopied = rows.stream().filter(row -> row.get("detail").contains("not copied")).count();
        assertEquals(batches - SideOutput.of(harness, DecodeOperator.DEAD_LETTERS).size(), notCopied);
        System.out.println("refused " + sent + " bytes, copied " + copied);
        assertTrue(copied > 1 << 20 && copied < 12 * (256 << 10) && sent > 3 * copied, copied + " of " + sent);
    }
}
