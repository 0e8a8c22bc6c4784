package oal.stream.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.access.AccessRecords;
import oal.stream.access.Revocations;
import oal.stream.block.RowBlock;
import oal.stream.capture.CaptureItems;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Capture;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.Golden;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RawBatch;
import oal.stream.codec.TableRows;
import oal.stream.item.TrainingItem;
import oal.stream.neighbour.NeighbourRecord;
import oal.stream.neighbour.RadioTraffic;
import oal.stream.operator.PipelineSettings;
import oal.stream.policy.Policies;
import oal.stream.platform.PlatformRecords;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamNode;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The whole pipeline on a real cluster in this process. */
class ApPipelineTest {
    @RegisterExtension
    static final MiniClusterExtension CLUSTER =
            new MiniClusterExtension(new MiniClusterResourceConfiguration.Builder().setNumberTaskManagers(1)
                    .setNumberSlotsPerTaskManager(2).build());

    private static final long NOW_MS = 1_800_000_000_000L;
    private static final long T0_US = NOW_MS * 1000;

    private static final List<JsonRecord> PLATFORM = List.of(
            new JsonRecord("x", PlatformRecords.json("rollout", PlatformRecords.ROLLOUT), NOW_MS, 0, 0),
                    new JsonRecord("x", new byte[] {'{'}, NOW_MS, 0, 1));

    /** Of an access point that sends nothing here, and one that nobody can read. */
    private static final List<JsonRecord> ACCESS = List.of(AccessRecords.revoked("ap-gone", T0_US, 0),
            new JsonRecord("ap-x", new byte[] {'['}, NOW_MS, 0, 1));

    private final CollectSink<RowBlock> rows = new CollectSink<>();
    private final CollectSink<TrainingItem> items = new CollectSink<>();
    private final CollectSink<DeadLetter> deadLetters = new CollectSink<>();
    private final CollectSink<NeighbourRecord> neighbours = new CollectSink<>();

    private StreamExecutionEnvironment environment(List<RawBatch> batches) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(2);
        ApPipeline.configure(env);
        ApPipeline.define(new Inputs(env.fromData(batches)
                .assignTimestampsAndWatermarks(RecordTime.watermarks()), env.fromData(PLATFORM),
                env.fromData(ACCESS).setParallelism(1), Revocations::new),
                new Sinks(rows, items, deadLetters, neighbours), PipelineSettings.DEFAULT,
                Policies.packed());
        return env;
    }

    static List<RawBatch> golden(String name) {
        List<RawBatch> out = new ArrayList<>();
        for (Golden.Record r : Golden.records(name)) {
            out.add(new RawBatch("ap-1", r.topic(), r.data(), NOW_MS, 0, out.size()));
        }
        return out;
    }

    /** Three decisions of the AP that sent this batch. */
    private static RawBatch decisions(RawBatch of) throws Exception {
        BatchDecoder decoder = BatchDecoder.all();
        decoder.decode(of.topic(), of.value);
        long t0 = decoder.header().t0Us;
        BatchBuilder b = new BatchBuilder(Topic.EVENTS, 1_000_000, t0);
        b.apId = decoder.header().apId;
        b.bootId = decoder.header().bootId;
        for (int i = 1; i <= 3; i++) {
            long instant = (t0 / Settings.DECISION_INTERVAL_US + i) * Settings.DECISION_INTERVAL_US;
            b.sparse(Tables.DECISION, Tables.Decision.TICK, (instant - t0) / Settings.TICK_US + 1,
                    Tables.Decision.INSTANT_US, instant, Tables.Decision.CLASS, i);
        }
        return b.record(NOW_MS);
    }

    @Test
    void everyRowIsThereOnceAndRefusedRecordsAreKept() throws Exception {
        List<RawBatch> in = golden("features");
        in.add(decisions(in.get(0)));
        List<RawBatch> bad = golden("refused");
        List<RawBatch> all = new ArrayList<>(in);
        all.addAll(bad);
        all.addAll(in.subList(0, 4)); // come again
        environment(all).execute();

        Map<String, Long> want = new TreeMap<>();
        BatchDecoder decoder = BatchDecoder.all();
        for (RawBatch b : in) {
            decoder.decode(b.topic(), b.value);
            for (TableRows t : decoder.tables(b.topic())) {
                if (t.rows > 0) want.merge(t.spec.name(), (long) t.rows, Long::sum);
            }
        }
        want.put("batch", (long) in.size());
        want.put("rollout", 1L);
        want.put("dead_letter", bad.size() + 2L);
        Map<String, Long> got = rows.kept().stream()
                .collect(Collectors.groupingBy(b -> b.table, TreeMap::new, Collectors.summingLong(b -> b.rows)));
        Map<String, Long> raw = new TreeMap<>(got);
        raw.keySet().removeAll(List.of("label", "loss_event", "item", "gap", "prediction"));
        assertEquals(want, raw);

        List<DeadLetter> ofAps = deadLetters.kept().stream().filter(d -> d.topic.startsWith("ap.")
                && !d.topic.equals("ap.access.v1")).toList();
        assertEquals(bad.size(), ofAps.size());
        assertEquals(bad.size() + 2, deadLetters.kept().size());
        assertEquals(Golden.lines("refused.txt").stream().sorted().toList(), ofAps.stream().map(d -> d.reason).sorted()
                .toList());
        assertEquals(want.getOrDefault("decision", 0L), got.getOrDefault("prediction", 0L),
                "one prediction a decision");
        assertTrue(want.get("decision") >= 3);
        assertTrue(got.get("label") > 0, "labels");
        assertTrue(got.get("loss_event") > 0, "losses");
        assertEquals((long) items.kept().size(), got.get("item"));
        // Four duplicates, and what the golden sequence contains: a batch missing in both topics and one in the packets
        // only, and a reboot.
        assertTrue(got.get("gap") >= 4 + 4, "gap rows: " + got.get("gap"));
    }

    @Test
    void aCapturesItemsAreThoseThatTheItemsCommandPrints() throws Exception {
        Path capture = Capture.committed().get(0);
        List<RawBatch> in = new ArrayList<>();
        BatchDecoder decoder = BatchDecoder.all();
        for (Golden.Record r : Capture.read(capture)) {
            decoder.decode(r.topic(), r.data());
            in.add(new RawBatch(decoder.header().apId, r.topic(), r.data(), decoder.header().endUs() / 1000, 0,
                    in.size()));
        }
        environment(in).execute();
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream log = new ByteArrayOutputStream();
        assertEquals(0, CaptureItems.run(List.of(capture.toString()), printed, new PrintStream(log)), log.toString());
        List<String> lines = printed.toString(StandardCharsets.UTF_8).lines().toList();
        assertTrue(lines.size() > 100, lines.size() + " items");
        // The command prints those of windows, which name no policy; other policies have their own of these instants.
        List<String> ofWindows = items.kept().stream().map(i -> new String(i.json, StandardCharsets.UTF_8))
                .filter(json -> !json.contains("\"policy\":")).toList();
        assertEquals(lines, ofWindows);
    }

    @Test
    void neighboursAreToldOfEachOther() throws Exception {
        List<RadioTraffic> aps = List.of(new RadioTraffic("ap-a", T0_US), new RadioTraffic("ap-b", T0_US),
                new RadioTraffic("ap-far", T0_US));
        aps.get(1).bytesPerBatch = 63_000;
        aps.get(2).frequencyMhz = 2412;
        List<RawBatch> in = new ArrayList<>();
        for (long seq = 0; seq < 60; seq++) {
            for (RadioTraffic ap : aps) {
                for (BatchBuilder b : List.of(ap.samples(seq), ap.packets(seq))) {
                    in.add(b.record((b.t0Us + RadioTraffic.BATCH_US) / 1000));
                }
            }
        }
        environment(in).execute();
        // 15 s of three access points, two of them on one channel: records at 5, 10 and 15 s. Then the input, and with
        // it all time, ends.
        assertEquals(List.of("lab/5180"), neighbours.kept().stream().map(r -> r.channel).distinct().toList());
        List<String> told = neighbours.kept().stream().filter(r -> r.json != null)
                .map(r -> new String(r.json, StandardCharsets.UTF_8)).toList();
        assertEquals(3, told.size());
        assertNull(neighbours.kept().get(3).json);
        String want = "{\"ap_id\":\"ap-b\",\"stations\":2,\"tx_kbps\":4000,\"tx_airtime_permille\":200"
                + ",\"busy_permille\":250,\"loss_permille\":0,\"backlog_bytes\":40000},"
                + "{\"ap_id\":\"ap-a\",\"stations\":2,\"tx_kbps\":2000,\"tx_airtime_permille\":200"
                + ",\"busy_permille\":250,\"loss_permille\":0,\"backlog_bytes\":40000}]}";
        for (String record : told) {
            assertTrue(record.startsWith("{\"site\":\"lab\",\"frequency_mhz\":5180,\"t_us\":18000000")
                    && record.endsWith(want), record);
        }
    }

    @Test
    void everyOperatorHasANameAndAUid() {
        StreamExecutionEnvironment env = environment(golden("features"));
        int checked = 0;
        for (StreamNode node : env.getStreamGraph(false).getStreamNodes()) {
            // of this test
            if (node.getOperatorName().startsWith("Source") || node.getOperatorName().contains("Timestamps")) continue;
            assertNotNull(node.getTransformationUID(), "uid of " + node.getOperatorName());
            assertTrue(List.of("decode", "label-feature-item", "platform-events", "access-records", "rows: Writer",
                    "training items: Writer", "dead letters: Writer", "neighbours", "neighbour records: Writer")
                    .contains(node.getOperatorName()),
                    "name " + node.getOperatorName());
            checked++;
        }
        assertEquals(9, checked);
    }

    @Test
    void decodeAndLabelRunAsOneTask() {
        StreamExecutionEnvironment env = environment(golden("features"));
        long tasks = 0;
        for (var v : env.getStreamGraph(false).getJobGraph().getVertices()) {
            if (v.getName().contains("decode") && v.getName().contains("label-feature-item")) tasks++;
        }
        assertEquals(1, tasks, "decode and label-feature-item are chained");
    }
}
