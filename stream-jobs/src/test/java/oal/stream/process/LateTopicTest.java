package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import oal.stream.block.NativeReader;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.RawBatch;
import oal.stream.item.TrainingItem;
import oal.stream.pipeline.PipelineSettings;
import oal.stream.sink.RowBlock;
import oal.stream.state.KeyedBlockOperator;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** One topic of an access point falls so far behind the other that it is given up, and then comes after all. No instant comes twice. */
class LateTopicTest {
    private static final long T0_US = 1_800_000_000_000_000L;
    private static final long LATENESS_MS = 5000;

    private final List<RowBlock> given = new ArrayList<>();
    private final ApTraffic ap = new ApTraffic("ap-1", T0_US);
    private KeyedOneInputStreamOperatorTestHarness<String, AcceptedBatch, TrainingItem> harness;

    @BeforeEach
    void open() throws Exception {
        harness = harness();
        harness.open();
    }

    private static KeyedOneInputStreamOperatorTestHarness<String, AcceptedBatch, TrainingItem> harness() throws Exception {
        return new KeyedOneInputStreamOperatorTestHarness<>(
                new ApOperator(PipelineSettings.DEFAULT.withLateness(Duration.ofMillis(LATENESS_MS))), b -> b.apId, Types.STRING);
    }

    /** As after a failure: what was given stays given, the state is that of the checkpoint. */
    private void restore() throws Exception {
        harness.prepareSnapshotPreBarrier(1);
        OperatorSubtaskState state = harness.snapshot(1, 1);
        if (harness.getSideOutput(KeyedBlockOperator.ROWS) != null) {
            for (StreamRecord<RowBlock> r : harness.getSideOutput(KeyedBlockOperator.ROWS)) given.add(r.getValue());
        }
        harness.close();
        harness = harness();
        harness.initializeState(state);
        harness.open();
    }

    @AfterEach
    void close() throws Exception {
        harness.close();
    }

    private void send(BatchBuilder b) throws Exception {
        RawBatch raw = b.record((b.t0Us + ApTraffic.BATCH_US) / 1000);
        BatchDecoder decoder = BatchDecoder.all();
        decoder.decode(raw.topic(), raw.value);
        harness.processElement(new AcceptedBatch(raw, decoder.header(), decoder.rows()), raw.kafkaTsMs);
    }

    private List<Map<String, String>> rows(String table) throws Exception {
        harness.prepareSnapshotPreBarrier(1);
        List<RowBlock> out = new ArrayList<>(given);
        if (harness.getSideOutput(KeyedBlockOperator.ROWS) != null) {
            for (StreamRecord<RowBlock> r : harness.getSideOutput(KeyedBlockOperator.ROWS)) out.add(r.getValue());
        }
        return NativeReader.rows(out, table);
    }

    private void assertEveryInstantOnce() throws Exception {
        for (String table : List.of("label", "item")) {
            List<Long> instants = rows(table).stream().map(row -> Long.parseLong(row.get("ts"))).toList();
            for (int i = 1; i < instants.size(); i++) assertEquals(instants.get(i - 1) + 100_000, instants.get(i), table + " " + i);
        }
    }

    private void behind(long packetsBefore, boolean failing) throws Exception {
        for (long s = 0; s < packetsBefore; s++) {
            send(ap.samples(s));
            send(ap.packets(s));
        }
        if (failing) restore();
        for (long s = packetsBefore; s < 80; s++) send(ap.samples(s));
        harness.processWatermark(new Watermark((T0_US + 80 * ApTraffic.BATCH_US) / 1000 + LATENESS_MS));
        if (failing) restore();
        for (long s = packetsBefore; s < 80; s++) send(ap.packets(s));
        for (long s = 80; s < 120; s++) {
            send(ap.samples(s));
            send(ap.packets(s));
        }
        assertEveryInstantOnce();
        List<Map<String, String>> late = rows("late");
        assertTrue(late.size() >= 79 - packetsBefore, late.size() + " late batches");
        assertEquals(List.of("ap.packets.v1"), late.stream().map(row -> row.get("topic")).distinct().collect(Collectors.toList()));
        Map<String, String> last = rows("label").get(rows("label").size() - 1);
        assertEquals("1", last.get("complete"), "whole again once both topics are in step");
    }

    @Test
    void aTopicThatBeginsLate() throws Exception {
        behind(0, false);
    }

    @Test
    void aTopicThatFallsBehind() throws Exception {
        behind(20, false);
    }

    @Test
    void aTopicThatFallsBehindWhileTheJobFails() throws Exception {
        behind(20, true);
    }
}
