package oal.stream.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import oal.schema.Settings;
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
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Access points whose clocks are an hour off beside one whose clock is right. */
class ClockSkewTest {
    @RegisterExtension
    static final MiniClusterExtension CLUSTER =
            new MiniClusterExtension(new MiniClusterResourceConfiguration.Builder().setNumberTaskManagers(1)
                    .setNumberSlotsPerTaskManager(2).build());

    private static final long NOW_US = 1_700_000_000_000_000L;
    private static final long HOUR_US = 3_600_000_000L;
    private static final int SEQS = 40;

    private final CollectSink<RowBlock> rows = new CollectSink<>();
    private final CollectSink<TrainingItem> items = new CollectSink<>();
    private final CollectSink<DeadLetter> deadLetters = new CollectSink<>();
    private final CollectSink<NeighbourRecord> neighbours = new CollectSink<>();

    /** Runs the job over the batches of these access points; the name says how far ahead the clock is. */
    private void run(Map<String, Long> skewUs) throws Exception {
        List<RadioTraffic> aps = new ArrayList<>();
        skewUs.forEach((name, skew) -> aps.add(new RadioTraffic(name, NOW_US + skew)));
        List<RawBatch> in = new ArrayList<>();
        for (int seq = 0; seq < SEQS; seq++) {
            long kafkaMs = (NOW_US + (seq + 1) * RadioTraffic.BATCH_US) / 1000; // the broker's clock is right
            for (RadioTraffic ap : aps) {
                for (BatchBuilder b : List.of(ap.samples(seq), ap.packets(seq))) in.add(b.record(kafkaMs));
            }
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(2);
        ApPipeline.configure(env);
        ApPipeline.define(new Inputs(env.fromData(in)
                .assignTimestampsAndWatermarks(RecordTime.watermarks()),
                        env.fromData(List.of(new JsonRecord("", null, NOW_US / 1000, 0, 0))),
                                env.fromData(List.of(new JsonRecord("ap-z", null, 0, 0, 0))), Revocations::new),
                new Sinks(rows, items, deadLetters, neighbours), PipelineSettings.DEFAULT,
                Policies.packed());
        env.execute();
    }

    private Set<String> items(String apId) {
        return items.kept().stream().filter(i -> i.apId.equals(apId))
                .map(i -> new String(i.json, StandardCharsets.UTF_8)).collect(Collectors.toCollection(TreeSet::new));
    }

    private Map<String, Long> byAp(String table) {
        return NativeReader.rows(rows.kept(), table).stream()
                .collect(Collectors.groupingBy(r -> r.get("ap_id"), Collectors.counting()));
    }

    @Test
    void anHourAheadIsRefusedAnHourBehindIsTakenAndNobodyElseLosesAnything() throws Exception {
        assertTrue(HOUR_US > Settings.MAX_FUTURE_US && HOUR_US < Settings.MAX_PAST_US);
        ClockSkewTest alone = new ClockSkewTest();
        alone.run(Map.of("ap-right", 0L));
        run(Map.of("ap-ahead", HOUR_US, "ap-behind", -HOUR_US, "ap-right", 0L));

        List<DeadLetter> refused = deadLetters.kept().stream().filter(d -> d.topic.startsWith("ap.s")
                || d.topic.startsWith("ap.p")).toList();
        assertEquals(2 * SEQS, refused.size());
        assertEquals(Set.of("ap-ahead time_range"), refused.stream().map(d -> d.key + " " + d.reason)
                .collect(Collectors.toSet()));
        assertEquals(2L * SEQS, NativeReader.rows(rows.kept(), "dead_letter").stream()
                .filter(r -> r.get("reason").equals("time_range")).count());
        assertEquals(Map.of("ap-right", 2L * SEQS, "ap-behind", 2L * SEQS), byAp("batch"));
        assertEquals(Map.of(), byAp("gap"));
        assertEquals(Map.of(), byAp("late"));
        assertTrue(alone.items("ap-right").size() > 20);
        assertEquals(alone.items("ap-right"), items("ap-right"), "to the bit what it is without the others");
        assertEquals(byAp("label").get("ap-right"), byAp("label").get("ap-behind"));
        assertEquals(items("ap-right").size(), items("ap-behind").size(), "at its own times");
        assertEquals(alone.byAp("station").get("ap-right"), byAp("station").get("ap-right"));
    }
}
