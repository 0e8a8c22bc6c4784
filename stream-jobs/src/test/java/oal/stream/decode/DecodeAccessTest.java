package oal.stream.decode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.access.AccessChange;
import oal.stream.access.AccessHistory;
import oal.stream.access.MacKeys;
import oal.stream.access.Revocations;
import oal.stream.block.NativeReader;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.RawBatch;
import oal.stream.operator.KeyedBlockOperator;
import oal.stream.operator.PipelineSettings;
import oal.stream.operator.SideOutput;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.streaming.util.KeyedTwoInputStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who made a batch, and whether it may: output, state and timers of the operator that asks. */
class DecodeAccessTest {
    private static final long T0_US = 1_800_000_000_000_000L;
    private static final long NOW_MS = T0_US / 1000;

    @TempDir
    Path folder;

    private MacKeys keys;
    private KeyedTwoInputStreamOperatorTestHarness<String, RawBatch, AccessChange, AcceptedBatch> harness;
    private long changes;

    @BeforeEach
    void open() throws Exception {
        keys = new MacKeys(folder.resolve("masters"), 1);
        open(Revocations::new, null);
    }

    private void open(AccessHistory before, OperatorSubtaskState state) throws Exception {
        PipelineSettings settings = PipelineSettings.DEFAULT.withStateTtl(Duration.ofMinutes(1))
                .withMacKeysFile(keys.file().toString());
        harness = new KeyedTwoInputStreamOperatorTestHarness<>(new DecodeOperator(settings, before), b -> b.key, null,
                Types.STRING);
        if (state != null) harness.initializeState(state);
        harness.open();
    }

    @AfterEach
    void close() throws Exception {
        harness.close();
    }

    private static RawBatch batch(String apId, long seq, long kafkaTsMs) {
        BatchBuilder b = new BatchBuilder(Topic.SAMPLES, seq, T0_US + seq * 252_000)
                .sparse(Tables.STATION, Tables.Station.MAC, 1, Tables.Station.TX_PKTS, seq);
        b.apId = apId;
        return b.record(kafkaTsMs);
    }

    private RawBatch signed(String apId, long seq, long kafkaTsMs) {
        return keys.signed(batch(apId, seq, kafkaTsMs), 1, apId, "lab");
    }

    private void send(RawBatch b) throws Exception {
        harness.processElement1(b, b.kafkaTsMs);
    }

    private void change(String apId, long revokedAtUs) throws Exception {
        harness.processElement2(new AccessChange(apId, revokedAtUs, 0, changes++), 0);
    }

    private List<Map<String, String>> rows(String table) throws Exception {
        harness.prepareSnapshotPreBarrier(1);
        return NativeReader.rows(SideOutput.of(harness, KeyedBlockOperator.ROWS), table);
    }

    private List<String> refused() {
        return SideOutput.of(harness, DecodeOperator.DEAD_LETTERS).stream().map(d -> d.reason).toList();
    }

    private List<String> accepted() {
        return harness.extractOutputValues().stream().map(b -> b.apId + " " + b.seq).toList();
    }

    @Test
    void aForgedBatchChangesNothingOfItsVictim() throws Exception {
        // ap-2 writes as ap-1: before it has spoken, in its sequence, and far ahead of it.
        send(keys.signed(batch("ap-1", 900, NOW_MS + 3_000_000), 1, "ap-2", "lab"));
        assertEquals(0, harness.numKeyedStateEntries());
        assertEquals(0, harness.numEventTimeTimers());
        send(signed("ap-1", 0, NOW_MS));
        send(keys.signed(batch("ap-1", 1, NOW_MS + 1), 1, "ap-2", "lab"));
        BatchBuilder reboot = new BatchBuilder(Topic.SAMPLES, 0, T0_US);
        reboot.bootId = 99;
        send(keys.signed(reboot.record(NOW_MS + 2), 1, "ap-1", "hall")); // and a stolen key of another site
        send(batch("ap-1", 1, NOW_MS + 3));
        send(keys.signed(batch("ap-1", 1, NOW_MS + 4), 7, "ap-1", "lab"));
        send(signed("ap-1", 1, NOW_MS + 5));
        assertEquals(List.of("ap-1 0", "ap-1 1"), accepted());
        assertEquals(List.of("forged", "forged", "forged", "unsigned", "unknown_key"), refused());
        assertEquals(List.of(), rows("gap"));
        assertEquals(2, rows("station").size());
        assertEquals(2, rows("batch").size());
        assertEquals(refused(), rows("dead_letter").stream().map(r -> r.get("reason")).toList());
        // The state lives for a minute after the victim's own last batch, whatever came in its name.
        harness.processWatermark1(new Watermark(NOW_MS + 5 + 60_000));
        assertEquals(0, harness.numKeyedStateEntries());
        assertEquals(0, harness.numEventTimeTimers());
    }

    @Test
    void theDeadLetterSaysWhoWasNamedAndKeepsTheMac() throws Exception {
        RawBatch forged = keys.signed(batch("ap-1", 3, NOW_MS), 1, "ap-2", "lab");
        forged.partition = 5;
        send(forged);
        DeadLetter letter = SideOutput.of(harness, DecodeOperator.DEAD_LETTERS).get(0);
        assertEquals("ap_id 'ap-1', site 'lab', partition 5, offset 3: the MAC of key_id 1 is not this access point's",
                letter.detail);
        assertArrayEquals(forged.mac, letter.mac);
        assertArrayEquals(forged.value, letter.value);
    }

    @Test
    void whatTheContractRefusesIsToldFirst() throws Exception {
        RawBatch truncated = batch("ap-1", 0, NOW_MS);
        truncated.value = java.util.Arrays.copyOf(truncated.value, 20);
        send(truncated);
        RawBatch key = signed("ap-1", 0, NOW_MS);
        key.key = "ap-2";
        send(key);
        send(batch("ap-1", 0, NOW_MS - 3_600_000));
        assertEquals(List.of("truncated", "key_mismatch", "time_range"), refused());
    }

    @Test
    void aRevokedApIsRefusedFromThenOnUntilItIsRestored() throws Exception {
        send(signed("ap-1", 0, NOW_MS));
        change("ap-1", (NOW_MS + 10) * 1000);
        send(signed("ap-1", 1, NOW_MS + 9)); // was in Kafka before
        send(signed("ap-1", 2, NOW_MS + 10));
        send(signed("ap-2", 0, NOW_MS + 10));
        send(signed("ap-1", 3, NOW_MS + 20));
        change("ap-1", AccessChange.NEVER);
        send(signed("ap-1", 4, NOW_MS + 30));
        assertEquals(List.of("ap-1 0", "ap-1 1", "ap-2 0", "ap-1 4"), accepted());
        assertEquals(List.of("revoked", "revoked"), refused());
        assertEquals("ap_id 'ap-1', partition 0, offset 2: revoked at " + (NOW_MS + 10) * 1000 + " µs",
                SideOutput.of(harness, DecodeOperator.DEAD_LETTERS).get(0).detail);
        assertEquals(List.of("missing 2 3"), rows("gap").stream().map(g -> g.get("kind") + " " + g.get("from_seq") + " "
                + g.get("to_seq")).toList(), "what was refused is missing, and that is told");
    }

    @Test
    void whoIsNotTheRevokedApIsAForgerAllTheSame() throws Exception {
        change("ap-1", 0);
        send(keys.signed(batch("ap-1", 0, NOW_MS), 1, "ap-2", "lab"));
        assertEquals(List.of("forged"), refused());
    }

    @Test
    void revocationsAreThereBeforeTheFirstBatchAfterARestore() throws Exception {
        send(signed("ap-1", 0, NOW_MS));
        send(signed("ap-2", 0, NOW_MS));
        harness.prepareSnapshotPreBarrier(1);
        OperatorSubtaskState state = harness.snapshot(1, 1);
        harness.close();
        // ap-1 was revoked while the job was down; the stream brings the same record again, and an older one of ap-2,
        // later.
        open(() -> {
            Revocations r = new Revocations();
            r.apply(new AccessChange("ap-2", 1, 0, 0));
            r.apply(new AccessChange("ap-2", AccessChange.NEVER, 0, 1));
            r.apply(new AccessChange("ap-1", NOW_MS * 1000 + 1, 0, 2));
            r.readTo(0, 3);
            return r;
        }, state);
        send(signed("ap-1", 1, NOW_MS + 1));
        harness.processElement2(new AccessChange("ap-2", 1, 0, 0), 0);
        send(signed("ap-2", 0, NOW_MS + 1)); // a duplicate: the arrivals were restored
        send(signed("ap-2", 1, NOW_MS + 2));
        assertEquals(List.of("revoked"), refused());
        assertEquals(List.of("ap-2 1"), accepted());
        assertEquals(List.of("duplicate"), rows("gap").stream().map(g -> g.get("kind")).toList());
    }

    @Test
    void changesOfAccessNeitherHoldTimeBackNorMoveIt() throws Exception {
        send(signed("ap-1", 0, NOW_MS));
        harness.processWatermark2(new Watermark(NOW_MS + 600_000));
        assertEquals(1, harness.numKeyedStateEntries());
        harness.processWatermarkStatus2(WatermarkStatus.IDLE);
        harness.processWatermark1(new Watermark(NOW_MS + 60_000));
        assertEquals(0, harness.numKeyedStateEntries());
        assertTrue(harness.getOutput().contains(new Watermark(NOW_MS + 60_000)),
                "it goes on though the other input has said nothing");
        assertTrue(!harness.getOutput().contains(new Watermark(NOW_MS + 600_000)));
        harness.processWatermarkStatus1(WatermarkStatus.IDLE);
        assertTrue(harness.getOutput().contains(WatermarkStatus.IDLE));
    }
}
