package oal.stream.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
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
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * The job was away for ten minutes. Then it reads what came meanwhile, one topic twice as fast as the other and on two
 * readers, beside a partition that is empty.
 */
class CatchUpTest {
    @RegisterExtension
    static final MiniClusterExtension CLUSTER =
            new MiniClusterExtension(new MiniClusterResourceConfiguration.Builder().setNumberTaskManagers(1)
                    .setNumberSlotsPerTaskManager(2).build());

    private static final long BATCH_US = RadioTraffic.BATCH_US;
    private static final int BATCHES = 2500; // 10.5 minutes
    /** Batches of an access point that wait at most: two minutes. What they are read out of step by must fit. */
    private static final int HOLDS = 512;
    private static final Duration BEHIND = Duration.ofSeconds(60);
    private static final long LIMIT_NS = 200_000_000_000L;
    private static final List<String> APS = List.of("ap-0", "ap-1");

    /** The latest batch came before the last minute, so that the end of the backlog is read to the end as well. */
    private final long t0Us = (System.currentTimeMillis() - 61_000) * 1000 / BATCH_US * BATCH_US - BATCHES * BATCH_US;
    private final CollectSink<RowBlock> rows = new CollectSink<>();
    private final CollectSink<TrainingItem> items = new CollectSink<>();
    private final CollectSink<DeadLetter> deadLetters = new CollectSink<>();
    private final CollectSink<NeighbourRecord> neighbours = new CollectSink<>();

    private Map<String, List<RawBatch>> backlog() {
        Map<String, List<RawBatch>> all = new TreeMap<>();
        List<RadioTraffic> aps = APS.stream().map(ap -> new RadioTraffic(ap, t0Us)).toList();
        for (int seq = 0; seq < BATCHES; seq++) {
            long brokerMs = (t0Us + (seq + 1) * BATCH_US) / 1000;
            for (int n = 0; n < aps.size(); n++) {
                aps.get(n).stations = 1;
                add(all, "samples-" + n, aps.get(n).samples(seq), brokerMs);
                add(all, "packets-" + n, aps.get(n).packets(seq), brokerMs);
                if (seq % 4 == 3) add(all, "events-0", decisions(APS.get(n), seq / 4), brokerMs);
            }
        }
        all.put("events-1", List.of());
        return all;
    }

    private static void add(Map<String, List<RawBatch>> all, String partition, BatchBuilder batch, long brokerMs) {
        List<RawBatch> of = all.computeIfAbsent(partition, name -> new ArrayList<>());
        RawBatch record = batch.record(brokerMs);
        record.offset = of.size();
        of.add(record);
    }

    /** One decision a second. */
    private BatchBuilder decisions(String ap, long seq) {
        long t0 = t0Us + seq * 4 * BATCH_US;
        long instant = (t0 / Settings.DECISION_INTERVAL_US + 1) * Settings.DECISION_INTERVAL_US;
        BatchBuilder b = new BatchBuilder(Topic.EVENTS, seq, t0);
        b.apId = ap;
        b.sparse(Tables.DECISION, Tables.Decision.TICK, (instant - t0) / Settings.TICK_US + 1,
                Tables.Decision.INSTANT_US, instant, Tables.Decision.CLASS, 1);
        return b;
    }

    private JobClient start(boolean inStep) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(2);
        ApPipeline.configure(env);
        LinkedHashMap<String, Integer> atATime = new LinkedHashMap<>();
        atATime.put("samples-0", 1);
        atATime.put("packets-0", 2);
        atATime.put("packets-1", 2);
        atATime.put("samples-1", 1);
        atATime.put("events-0", 8);
        atATime.put("events-1", 8);
        BacklogSource backlog = new BacklogSource(backlog(), atATime);
        var batches = inStep
                ? env.fromSource(new AlignedSource<>(backlog, backlog::ends, BEHIND, Long.MAX_VALUE),
                        BrokerTime.aligned(Duration.ofSeconds(10)), "backlog")
                : env.fromSource(backlog, RecordTime.watermarks(), "backlog", TypeInformation.of(RawBatch.class));
        ApPipeline.define(new Inputs(batches.uid("batches"), Feed.of(env, "test-platform", JsonRecord.class, List.of()),
                Feed.of(env, "test-access", JsonRecord.class, List.of()), Revocations::new),
                new Sinks(rows, items, deadLetters, neighbours), PipelineSettings.DEFAULT.withRawRows(false)
                        .withMostWaiting(HOLDS),
                Policies.rwndFair());
        return env.executeAsync();
    }

    private List<Map<String, String>> rows(String table) {
        return NativeReader.rows(rows.kept(), table);
    }

    private int count(String table) {
        return rows.kept().stream().filter(block -> block.table.equals(table)).mapToInt(block -> block.rows).sum();
    }

    private void untilRead(JobClient job) throws Exception {
        long start = System.nanoTime();
        int last = BATCHES * 2 / 4 - 10;
        while (count("batch") < 2 * 2 * BATCHES + 2 * (BATCHES / 4) || count("prediction") < last) {
            assertTrue(System.nanoTime() - start < LIMIT_NS, () -> "read " + count("batch") + " batches, "
                    + count("prediction") + " predictions");
            assertTrue(!job.getJobStatus().get().isTerminalState(), "the job ended");
            Thread.sleep(100);
        }
    }

    @Test
    void catchingUpLosesNothing() throws Exception {
        JobClient job = start(true);
        untilRead(job);
        job.cancel().get();
        assertEquals(List.of(), rows("late"));
        assertEquals(List.of(), rows("gap"));
        for (String table : List.of("label", "item")) {
            for (String ap : APS) {
                List<Map<String, String>> of = rows(table).stream().filter(row -> row.get("ap_id").equals(ap)).toList();
                Set<String> instants = new HashSet<>();
                long incomplete = of.stream().filter(row -> row.get("complete").equals("0")).count();
                of.forEach(row -> assertTrue(instants.add(row.get("ts")), table + " twice"));
                // The first ones look back to before the first batch.
                assertTrue(incomplete < 150, incomplete + " incomplete of " + table + " of " + ap);
                assertTrue(of.size() > BATCHES * BATCH_US / Settings.DECISION_INTERVAL_US - 60,
                        of.size() + " of " + table);
            }
        }
        long unknown = rows("prediction").stream().filter(row -> row.get("class").equals("unknown")).count();
        assertTrue(unknown < 20, unknown + " predictions without their item");
    }

    /** What the drift is for: so it was before. */
    @Test
    void outOfStepTheSameBacklogLosesLabels() throws Exception {
        JobClient job = start(false);
        untilRead(job);
        job.cancel().get();
        assertTrue(rows("late").size() > 100, rows("late").size() + " late");
    }
}
