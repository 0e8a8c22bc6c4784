package oal.stream.bench;

import java.util.List;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.RawBatch;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.util.Collector;

/**
 * Turns 0, 1, 2, … into the batches of many APs: preloaded bodies, used in turn, under headers that go on in time and
 * sequence. Every fourth pair is followed by the AP's decisions of the second, which are not among the rows that are
 * counted. The time is past, so that the watermark can follow it.
 */
final class BenchSource extends RichFlatMapFunction<Long, RawBatch> {
    private static final long serialVersionUID = 1L;
    private static final long T0_US = 1_700_000_000_000_000L;
    private static final long BATCH_US = (long) Settings.BATCH_TICKS * Settings.TICK_US;

    /** Process CPU time at the batch from which on is measured, ns. */
    static volatile long cpuAtMark;

    private final String what;
    private final int aps;
    private final long mark;
    private transient List<List<Bodies.Pair>> bodies;

    BenchSource(String what, int aps, long mark) {
        this.what = what;
        this.aps = aps;
        this.mark = mark;
    }

    /** Rows of batches {@code from} to {@code n}. */
    static long rows(List<List<Bodies.Pair>> bodies, int aps, long from, long n) {
        long rows = 0;
        for (long i = from; i < n; i += 2) rows += pair(bodies, i / 2 % aps, i / 2 / aps).rows();
        return rows;
    }

    private static Bodies.Pair pair(List<List<Bodies.Pair>> bodies, long ap, long seq) {
        List<Bodies.Pair> of = bodies.get((int) (ap % bodies.size()));
        return of.get((int) (seq % of.size()));
    }

    @Override
    public void open(OpenContext context) throws Exception {
        bodies = Bodies.load(what);
    }

    @Override
    public void flatMap(Long i, Collector<RawBatch> out) {
        if (i == mark) cpuAtMark = PipelineBench.cpuNs();
        Topic topic = i % 2 == 0 ? Topic.SAMPLES : Topic.PACKETS;
        long ap = i / 2 % aps;
        long seq = i / 2 / aps;
        Bodies.Pair pair = pair(bodies, ap, seq);
        BatchBuilder head = new BatchBuilder(topic, seq, T0_US + seq * BATCH_US);
        head.apId = "ap-" + ap;
        head.names = topic == Topic.SAMPLES ? pair.sampleNames() : pair.packetNames();
        byte[] header = head.header();
        byte[] body = topic == Topic.SAMPLES ? pair.samples() : pair.packets();
        byte[] value = new byte[header.length + body.length];
        System.arraycopy(header, 0, value, 0, header.length);
        System.arraycopy(body, 0, value, header.length, body.length);
        out.collect(new RawBatch(head.apId, topic, value, (head.t0Us + BATCH_US) / 1000, 0, seq));
        if (topic == Topic.PACKETS && seq % 4 == 3) out.collect(decisions(head.apId, seq / 4));
    }

    private static RawBatch decisions(String apId, long second) {
        long t0 = T0_US + second * 4 * BATCH_US;
        BatchBuilder b = new BatchBuilder(Topic.EVENTS, second, t0);
        b.apId = apId;
        for (long t = t0 / Settings.DECISION_INTERVAL_US * Settings.DECISION_INTERVAL_US
                + Settings.DECISION_INTERVAL_US; t <= t0 + 4 * BATCH_US; t += Settings.DECISION_INTERVAL_US) {
            b.sparse(Tables.DECISION, Tables.Decision.VERSION, 1, Tables.Decision.TICK, (t - t0) / Settings.TICK_US + 1,
                    Tables.Decision.INSTANT_US, t, Tables.Decision.CLASS, t / 100_000 % 4,
                    Tables.Decision.CONFIDENCE_PERMILLE, 700, Tables.Decision.FEATURES_HASH,
                            t * 0x9E3779B97F4A7C15L >>> 1);
        }
        return b.record((t0 + 4 * BATCH_US) / 1000);
    }
}
