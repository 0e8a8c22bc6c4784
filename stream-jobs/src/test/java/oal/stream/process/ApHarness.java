package oal.stream.process;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import oal.stream.block.NativeReader;
import oal.stream.block.RowBlock;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.RawBatch;
import oal.stream.decode.AcceptedBatch;
import oal.stream.item.TrainingItem;
import oal.stream.operator.KeyedBlockOperator;
import oal.stream.operator.PipelineSettings;
import oal.stream.operator.SideOutput;
import oal.stream.policy.Policies;
import oal.stream.state.StateSettings;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** The keyed operator under a test, and an access point that sends to it. Time moves only as the test says. */
abstract class ApHarness {
    static final long T0_US = 1_800_000_000_000_000L;
    static final long LATENESS_MS = 5000;
    static final PipelineSettings SETTINGS = PipelineSettings.DEFAULT.withLateness(Duration.ofMillis(LATENESS_MS))
            .withStateTtl(Duration.ofMinutes(10));

    final ApTraffic ap = new ApTraffic("ap-1", T0_US);
    KeyedOneInputStreamOperatorTestHarness<String, AcceptedBatch, TrainingItem> harness;
    /** What came out of the operators before this one. */
    private final List<RowBlock> before = new ArrayList<>();
    private int checkpoints;
    /** Of the operator that is opened next. */
    Policies policies = Policies.rwndFair();
    StateSettings settings = StateSettings.NOW;

    /** Also in the middle of a test: an operator that knows nothing. */
    @BeforeEach
    void open() throws Exception {
        before.clear();
        harness = harness();
        harness.open();
    }

    @AfterEach
    void close() throws Exception {
        harness.close();
    }

    private KeyedOneInputStreamOperatorTestHarness<String, AcceptedBatch, TrainingItem> harness()
            throws Exception {
        return new KeyedOneInputStreamOperatorTestHarness<>(new ApOperator(SETTINGS, policies, settings), b -> b.apId,
                Types.STRING);
    }

    /** As after a failure: what was given stays given, the state is that of the checkpoint. */
    void restore() throws Exception {
        harness.prepareSnapshotPreBarrier(++checkpoints);
        OperatorSubtaskState state = harness.snapshot(checkpoints, checkpoints);
        before.addAll(SideOutput.of(harness, KeyedBlockOperator.ROWS));
        harness.close();
        harness = harness();
        harness.initializeState(state);
        harness.open();
    }

    /** Sent so that the broker takes it when it ends. */
    void send(BatchBuilder b) throws Exception {
        send(b, (b.t0Us + ApTraffic.BATCH_US) / 1000);
    }

    void send(BatchBuilder b, long kafkaMs) throws Exception {
        harness.processElement(accepted(b, kafkaMs), kafkaMs);
    }

    /** As the operator before this one gives it. */
    static AcceptedBatch accepted(BatchBuilder b, long kafkaMs) throws Exception {
        RawBatch raw = b.record(kafkaMs);
        BatchDecoder decoder = BatchDecoder.all();
        decoder.decode(raw.topic(), raw.value);
        return new AcceptedBatch(raw, decoder.header(), decoder.rows());
    }

    void sendPairs(long from, long to) throws Exception {
        for (long s = from; s < to; s++) {
            send(ap.samples(s));
            send(ap.packets(s));
        }
    }

    /** When the broker takes the batches number {@code seq}, if the AP began with the test. */
    static long brokerMs(long seq) {
        return (T0_US + (seq + 1) * ApTraffic.BATCH_US) / 1000;
    }

    List<Map<String, String>> rows(String table) throws Exception {
        harness.prepareSnapshotPreBarrier(++checkpoints);
        List<RowBlock> all = new ArrayList<>(before);
        all.addAll(SideOutput.of(harness, KeyedBlockOperator.ROWS));
        return NativeReader.rows(all, table);
    }

    static long ts(Map<String, String> row) {
        return Long.parseLong(row.get("ts"));
    }
}
