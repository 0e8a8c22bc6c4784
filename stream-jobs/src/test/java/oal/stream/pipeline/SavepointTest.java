package oal.stream.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import oal.stream.access.Revocations;
import oal.stream.block.NativeReader;
import oal.stream.block.RowBlock;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RawBatch;
import oal.stream.item.TrainingItem;
import oal.stream.neighbour.NeighbourRecord;
import oal.stream.neighbour.RadioTraffic;
import oal.stream.operator.PipelineSettings;
import oal.stream.policy.Manifests;
import oal.stream.policy.Policies;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/**
 * A savepoint is taken up where it was left, all of it (no state in it may be without its operator): one of this
 * version, and the committed one of the version before the job knew {@code ap.access.v1} and had an operator
 * {@code decode} with one input. That one is what {@link #savepoint} wrote there.
 */
class SavepointTest {
    @RegisterExtension
    static final MiniClusterExtension CLUSTER =
            new MiniClusterExtension(new MiniClusterResourceConfiguration.Builder().setNumberTaskManagers(1)
                    .setNumberSlotsPerTaskManager(4).build());

    private static final long T0_US = 1_700_000_000_000_000L;
    private static final int BEFORE = 30;
    private static final int AFTER = 60;
    private static final long LIMIT_NS = 120_000_000_000L;

    @TempDir
    Path folder;

    private final CollectSink<RowBlock> rows = new CollectSink<>();
    private final CollectSink<TrainingItem> items = new CollectSink<>();
    private final CollectSink<DeadLetter> deadLetters = new CollectSink<>();
    private final CollectSink<NeighbourRecord> neighbours = new CollectSink<>();

    /** Two access points on one channel. */
    private static List<RawBatch> batches(int from, int to) {
        List<RadioTraffic> aps = List.of(new RadioTraffic("ap-a", T0_US), new RadioTraffic("ap-b", T0_US));
        List<RawBatch> out = new ArrayList<>();
        for (int seq = 0; seq < to; seq++) {
            for (RadioTraffic ap : aps) {
                RawBatch samples = ap.samples(seq).record((T0_US + (seq + 1) * RadioTraffic.BATCH_US) / 1000);
                if (seq >= from) out.addAll(List.of(samples, ap.packets(seq).record(samples.kafkaTsMs)));
            }
        }
        return out;
    }

    private JobClient start(List<RawBatch> batches, Configuration configuration) throws Exception {
        return start(batches, configuration, Policies.rwndFair());
    }

    private JobClient start(List<RawBatch> batches, Configuration configuration, Policies policies)
            throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        env.setParallelism(2);
        ApPipeline.configure(env);
        ApPipeline.define(new Inputs(Feed.batches(env, batches), Feed.of(env, "test-platform", JsonRecord.class,
                List.of()), Feed.of(env, "test-access", JsonRecord.class, List.of()), Revocations::new),
                new Sinks(rows, items, deadLetters, neighbours), PipelineSettings.DEFAULT,
                policies);
        return env.executeAsync();
    }

    private static void until(JobClient job, String what, BooleanSupplier condition) throws Exception {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() - start < LIMIT_NS, "waited too long for " + what);
            assertTrue(!job.getJobStatus().get().isTerminalState(), "the job ended without " + what);
            Thread.sleep(20);
        }
    }

    private long count(String table) {
        return NativeReader.rows(rows.kept(), table).size();
    }

    /** Where a savepoint after the first {@link #BEFORE} batches of each topic was written. */
    private String savepoint(Policies policies) throws Exception {
        JobClient job = start(batches(0, BEFORE), new Configuration(), policies);
        until(job, "the first batches", () -> count("batch") == 4 * BEFORE);
        return job.stopWithSavepoint(false, folder.toUri().toString(), SavepointFormatType.CANONICAL).get();
    }

    private static List<String> text(CollectSink<TrainingItem> items) {
        return items.kept().stream().map(i -> new String(i.json, StandardCharsets.UTF_8)).toList();
    }

    private static long instant(String item) {
        return Long.parseLong(item.replaceFirst(".*\"ts_us\":", "").replaceFirst(",.*", ""));
    }

    /** The last batches come again, then those that follow. */
    private void assertGoesOnFrom(String savepoint) throws Exception {
        assertGoesOnFrom(savepoint, Policies.rwndFair(), true);
    }

    /**
     * @param holesKnown whether the savepoint says what holes its features remember. If not, it is of an earlier
     *     feature program: its features begin anew, and items remember a hole until their memory is full
     */
    private void assertGoesOnFrom(String savepoint, Policies policies, boolean holesKnown) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(StateRecoveryOptions.SAVEPOINT_PATH, savepoint);
        SavepointTest restored = new SavepointTest();
        JobClient job = restored.start(batches(BEFORE - 5, AFTER), configuration, policies);
        until(job, "the batches that follow", () -> restored.count("batch") == 4 * (AFTER - BEFORE));
        SavepointTest whole = new SavepointTest();
        JobClient other = whole.start(batches(0, AFTER), new Configuration(), policies);
        until(other, "all batches", () -> whole.count("batch") == 4 * AFTER);
        long last = text(whole.items).stream().mapToLong(SavepointTest::instant).max().orElseThrow();
        for (SavepointTest t : List.of(restored, whole)) {
            until(job, "the last item", () -> text(t.items).stream().filter(i -> instant(i) >= last).count()
                    == 2L * policies.size());
        }
        job.cancel().get();
        other.cancel().get();

        Map<String, Long> gaps = NativeReader.rows(restored.rows.kept(), "gap").stream()
                .collect(Collectors.groupingBy(g -> g.get("kind"), Collectors.counting()));
        assertEquals(Map.of("duplicate", 4L * 5), gaps, "arrivals are known");
        long first = text(restored.items).stream().mapToLong(SavepointTest::instant).min().orElseThrow();
        List<String> after = text(restored.items);
        boolean sameProgram = first < T0_US + BEFORE * RadioTraffic.BATCH_US;
        assertEquals(holesKnown, sameProgram, "items of before are finished, if their features are still computed");
        if (sameProgram) {
            assertTrue(after.stream().noneMatch(i -> i.contains("\"lacked_input\":true")));
        } else {
            assertTrue(after.stream().allMatch(i -> i.contains("\"lacked_input\":true")), "all remember a hole");
        }
        assertEquals(values(text(whole.items).stream().filter(i -> instant(i) >= first).toList(), sameProgram),
                values(after, sameProgram), "features and labels go on");
    }

    /** What is compared: all of an item, or of those whose features begin anew all but what these and their holes say.
     */
    private static TreeSet<String> values(List<String> items, boolean features) {
        return new TreeSet<>(items.stream().map(i -> features ? i : i.replaceAll("\"complete\":\\w+", "")
                .replaceAll("\"features\":\\[[^]]*]", "").replace(",\"lacked_input\":true", "")).toList());
    }

    @Test
    void aSavepointOfThisVersionIsTakenUp() throws Exception {
        assertGoesOnFrom(savepoint(Policies.rwndFair()));
    }

    @Test
    void soIsOneOfSeveralPolicies() throws Exception {
        Policies two = Manifests.with("example");
        assertGoesOnFrom(savepoint(two), two, true);
    }

    /** Programs that are not shipped with this version are in the savepoint, so that what is kept of them is read. */
    @Test
    void soIsOneOfOtherPoliciesAsFarAsTheyAreTheSame() throws Exception {
        assertGoesOnFrom(savepoint(Manifests.with("example", "gone")), Manifests.with("example"), true);
    }

    @Test
    void aSavepointOfTheVersionBeforeIsTakenUp() throws Exception {
        Path before = Path.of(System.getProperty("oal.root", ".."),
                "stream-jobs/src/test/resources/savepoint-before-access").toAbsolutePath();
        assertTrue(Files.size(before.resolve("_metadata")) > 10_000);
        assertGoesOnFrom(before.toUri().toString(), Policies.rwndFair(), false);
    }
}
