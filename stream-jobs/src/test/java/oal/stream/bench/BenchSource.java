package oal.stream.bench;

import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import oal.schema.Settings;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.RawBatch;

/** Turns 0, 1, 2, … into the batches of many APs: preloaded bodies, used in turn, under headers that go on in time and sequence. */
final class BenchSource extends RichMapFunction<Long, RawBatch> {
    private static final long serialVersionUID = 1L;
    private static final long T0_US = 1_800_000_000_000_000L;
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
    public RawBatch map(Long i) {
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
        return new RawBatch(head.apId, topic, value, (head.t0Us + BATCH_US) / 1000, 0, seq);
    }
}
