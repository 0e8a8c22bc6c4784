package oal.stream.bench;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import oal.schema.Settings;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.RawBatch;

/** Turns 0, 1, 2, … into the batches of many APs: preloaded bodies under headers that go on in time and sequence. */
final class BenchSource extends RichMapFunction<Long, RawBatch> implements Serializable {
    private static final long serialVersionUID = 1L;
    /** Different batches per topic, used in turn. */
    private static final int BODIES = 32;
    private static final long T0_US = 1_800_000_000_000_000L;
    private static final long BATCH_US = (long) Settings.BATCH_TICKS * Settings.TICK_US;

    /** Process CPU time at the batch from which on is measured, ns. */
    static volatile long cpuAtMark;

    private final int aps;
    private final long mark;
    private transient List<byte[]> samples;
    private transient List<byte[]> packets;

    BenchSource(int aps, long mark) {
        this.aps = aps;
        this.mark = mark;
    }

    /** Rows of batches {@code from} to {@code n}. */
    static long rows(int aps, long from, long n) {
        SyntheticAp ap = new SyntheticAp(1);
        long[] s = new long[BODIES];
        long[] p = new long[BODIES];
        for (int i = 0; i < BODIES; i++) {
            s[i] = ap.samples().rows();
            p[i] = ap.packets().rows();
        }
        long rows = 0;
        for (long i = from; i < n; i++) {
            int body = (int) (i / 2 / aps % BODIES);
            rows += i % 2 == 0 ? s[body] : p[body];
        }
        return rows;
    }

    @Override
    public void open(OpenContext context) {
        SyntheticAp ap = new SyntheticAp(1);
        samples = new ArrayList<>();
        packets = new ArrayList<>();
        for (int i = 0; i < BODIES; i++) {
            samples.add(ap.samples().body());
            packets.add(ap.packets().body());
        }
    }

    @Override
    public RawBatch map(Long i) {
        if (i == mark) cpuAtMark = PipelineBench.cpuNs();
        Topic topic = i % 2 == 0 ? Topic.SAMPLES : Topic.PACKETS;
        long ap = i / 2 % aps;
        long seq = i / 2 / aps;
        BatchBuilder head = new BatchBuilder(topic, seq, T0_US + seq * BATCH_US);
        head.apId = "ap-" + ap;
        byte[] header = head.header();
        byte[] body = (topic == Topic.SAMPLES ? samples : packets).get((int) (seq % BODIES));
        byte[] value = new byte[header.length + body.length];
        System.arraycopy(header, 0, value, 0, header.length);
        System.arraycopy(body, 0, value, header.length, body.length);
        return new RawBatch(head.apId, topic, value, (head.t0Us + BATCH_US) / 1000, 0, seq);
    }
}
