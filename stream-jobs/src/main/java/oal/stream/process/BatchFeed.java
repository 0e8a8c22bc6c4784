package oal.stream.process;

import java.util.Map;
import java.util.TreeMap;
import oal.schema.Topic;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.RawBatch;
import oal.stream.codec.RefusedException;
import oal.stream.decode.AcceptedBatch;
import oal.stream.operator.PipelineSettings;
import oal.stream.policy.Policies;

/**
 * Sends recorded batches through the job's processing of access points, without Kafka and Flink. The broker's time is
 * the batches' own end.
 */
final class BatchFeed {
    private final Policies policies = Policies.rwndFair();
    final Map<String, ApState> aps = new TreeMap<>();
    private final ApProcessor processor;
    private final BatchDecoder decoder = BatchDecoder.all();
    private long nowMs = Long.MIN_VALUE;
    long batches;
    long refused;

    BatchFeed(ApOutput out) {
        processor = new ApProcessor(policies, PipelineSettings.DEFAULT.lateness().toMillis(), out);
    }

    void add(Topic topic, byte[] data) {
        try {
            decoder.decode(topic, data);
        } catch (RefusedException e) {
            refused++;
            return;
        }
        batches++;
        nowMs = Math.max(nowMs, decoder.header().endUs() / 1000);
        AcceptedBatch batch = new AcceptedBatch(new RawBatch(decoder.header().apId, topic, data, nowMs, 0, batches),
                decoder.header(), decoder.rows());
        processor.accept(aps.computeIfAbsent(batch.apId, id -> new ApState(policies)), batch, nowMs - 1);
    }

    /** No more batches come: process those that wait. */
    void end() {
        for (ApState ap : aps.values()) processor.release(ap, Long.MAX_VALUE);
    }
}
