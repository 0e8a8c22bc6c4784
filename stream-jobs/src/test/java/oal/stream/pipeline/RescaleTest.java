package oal.stream.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.access.Revocations;
import oal.stream.block.NativeReader;
import oal.stream.block.RowBlock;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RawBatch;
import oal.stream.item.TrainingItem;
import oal.stream.neighbour.NeighbourRecord;
import oal.stream.neighbour.RadioTraffic;
import oal.stream.operator.PipelineSettings;
import oal.stream.policy.Policies;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/**
 * A job goes on with more slots and with fewer, and with more and fewer writers of each sink: 2, 4, 1. Its state keeps
 * the number of key groups that it began with, where nobody sets another.
 */
class RescaleTest {
    @RegisterExtension
    static final MiniClusterExtension CLUSTER =
            new MiniClusterExtension(new MiniClusterResourceConfiguration.Builder().setNumberTaskManagers(1)
                    .setNumberSlotsPerTaskManager(4).build());

    private static final long T0_US = 1_700_000_000_000_000L;
    private static final int APS = 7;
    private static final int BATCHES = 20;
    private static final long LIMIT_NS = 120_000_000_000L;

    @TempDir
    Path folder;

    private final CommitSink<RowBlock> rows = new CommitSink<>();
    private final CommitSink<TrainingItem> items = new CommitSink<>();
    private final CommitSink<DeadLetter> deadLetters = new CommitSink<>();
    private final CommitSink<NeighbourRecord> neighbours = new CommitSink<>();

    /** Batches number {@code from} to {@code to} of all access points, and a decision an instant of each. */
    private static List<RawBatch> batches(int from, int to) throws Exception {
        List<RawBatch> out = new ArrayList<>();
        List<RadioTraffic> aps = new ArrayList<>();
        for (int a = 0; a < APS; a++) aps.add(new RadioTraffic("ap-" + a, T0_US));
        for (int seq = 0; seq < to; seq++) {
            long t0 = T0_US + seq * RadioTraffic.BATCH_US;
            long taken = (t0 + RadioTraffic.BATCH_US) / 1000;
            for (int a = 0; a < APS; a++) {
                RawBatch samples = aps.get(a).samples(seq).record(taken); // counters go on in those that are left out
                if (seq >= from) {
                    out.addAll(List.of(decisions("ap-" + a, seq, t0).record(taken), samples,
                            aps.get(a).packets(seq).record(taken)));
                }
            }
        }
        return out;
    }

    private static BatchBuilder decisions(String ap, int seq, long t0) {
        BatchBuilder b = new BatchBuilder(Topic.EVENTS, seq, t0);
        b.apId = ap;
        long step = Settings.DECISION_INTERVAL_US;
        for (long instant = (t0 + step - 1) / step * step; instant < t0 + RadioTraffic.BATCH_US; instant += step) {
            b.sparse(Tables.DECISION, Tables.Decision.TICK, (instant - t0) / Settings.TICK_US + 1,
                    Tables.Decision.INSTANT_US, instant, Tables.Decision.CLASS, instant / step % 4);
        }
        return b;
    }

    private JobClient start(List<RawBatch> batches, int slots, int writers, int maxParallelism, String savepoint)
            throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(200));
        if (maxParallelism > 0) configuration.set(PipelineOptions.MAX_PARALLELISM, maxParallelism);
        if (savepoint != null) configuration.set(StateRecoveryOptions.SAVEPOINT_PATH, savepoint);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        env.setParallelism(slots);
        ApPipeline.configure(env);
        ApPipeline.define(new Inputs(Feed.batches(env, batches), Feed.of(env, "test-platform", JsonRecord.class,
                List.of()), Feed.of(env, "test-access", JsonRecord.class, List.of()), Revocations::new),
                new Sinks(rows, items, deadLetters, neighbours, writers), PipelineSettings.DEFAULT,
                Policies.rwndFair());
        return env.executeAsync();
    }

    private static void until(JobClient job, String what, BooleanSupplier condition) throws Exception {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - start < LIMIT_NS, "waited too long for " + what);
            if (job.getJobStatus().get().isTerminalState()) job.getJobExecutionResult().get(); // throws what ended it
            Thread.sleep(20);
        }
    }

    /** Of the batches that were sent, those that labels are made of have gone through. */
    private void taken(JobClient job, int batches) throws Exception {
        until(job, "batch " + batches, () -> NativeReader.rows(rows.kept(), "batch").size() == 3 * APS * batches);
    }

    private String stop(JobClient job) throws Exception {
        return job.stopWithSavepoint(false, folder.toUri().toString(), SavepointFormatType.CANONICAL).get();
    }

    /** Of the operators that hold the state of access points; one number. */
    private static int keyGroups(String savepoint) throws Exception {
        Path file = Path.of(URI.create(savepoint)).resolve("_metadata");
        CheckpointMetadata metadata;
        try (DataInputStream in = new DataInputStream(Files.newInputStream(file))) {
            metadata = Checkpoints.loadCheckpointMetadata(in, RescaleTest.class.getClassLoader(), savepoint);
        }
        TreeSet<Integer> numbers = new TreeSet<>();
        for (OperatorState state : metadata.getOperatorStates()) {
            boolean keyed = state.getStates().stream().anyMatch(s -> !s.getManagedKeyedState().isEmpty());
            if (keyed) numbers.add(state.getMaxParallelism());
        }
        assertEquals(1, numbers.size(), numbers.toString());
        return numbers.first();
    }

    /** Rows of what the job makes; none is there twice. */
    private Map<String, TreeSet<String>> made() {
        Map<String, TreeSet<String>> made = new TreeMap<>();
        for (String table : List.of("label", "loss_event", "item", "prediction", "batch", "gap", "late")) {
            List<Map<String, String>> all = NativeReader.rows(rows.kept(), table);
            TreeSet<String> different = new TreeSet<>();
            for (Map<String, String> row : all) different.add(new TreeMap<>(row).toString());
            assertEquals(all.size(), different.size(), table + ": something is there twice");
            made.put(table, different);
        }
        return made;
    }

    @Test
    void nothingIsLostOrThereTwice() throws Exception {
        JobClient two = start(batches(0, BATCHES), 2, 1, 720, null);
        taken(two, BATCHES);
        String first = stop(two);
        assertThrows(Exception.class, () -> start(List.of(), 2, 1, 128, first).getJobExecutionResult().get(),
                "another number of key groups is refused");
        JobClient four = start(batches(BATCHES, 2 * BATCHES), 4, 3, 0, first);
        taken(four, 2 * BATCHES);
        String second = stop(four);
        assertEquals(720, keyGroups(second), "the number is still that");
        JobClient one = start(batches(2 * BATCHES, 3 * BATCHES), 1, 2, 0, second);
        taken(one, 3 * BATCHES);
        stop(one);

        RescaleTest whole = new RescaleTest();
        whole.folder = folder;
        JobClient never = whole.start(batches(0, 3 * BATCHES), 1, 1, 0, null);
        whole.taken(never, 3 * BATCHES);
        whole.stop(never);
        Map<String, TreeSet<String>> made = made();
        assertEquals(whole.made(), made);
        assertTrue(made.get("item").size() > APS * 110 && made.get("prediction").size() > APS * 110
                && made.get("label").size() > APS * 110, "" + made.get("item").size());
        assertEquals(Map.of("gap", 0, "late", 0), Map.of("gap", made.get("gap").size(), "late",
                made.get("late").size()));
        assertEquals(whole.items.kept().size(), items.kept().size(), "training items");
        assertEquals(made.get("item").size(), items.kept().size());
    }

    /** What an installation of before has: 128 key groups, and no key in its configuration. */
    @Test
    void aCheckpointOfFlinksOwnNumberIsTakenUpWhereNoneIsSet() throws Exception {
        JobClient before = start(batches(0, BATCHES), 2, 1, 128, null);
        taken(before, BATCHES);
        String savepoint = stop(before);
        assertEquals(128, keyGroups(savepoint));
        JobClient now = start(batches(BATCHES, 2 * BATCHES), 1, 1, 0, savepoint);
        taken(now, 2 * BATCHES);
        stop(now);
        assertEquals(new TreeSet<>(), made().get("gap"));
    }
}
