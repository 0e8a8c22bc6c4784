package oal.stream.pipeline;

import java.time.Duration;
import oal.stream.codec.RawBatch;
import oal.stream.process.ApOperator;
import org.apache.flink.api.common.eventtime.NoWatermarksGenerator;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;

/**
 * The stream's time is the time at which the broker received a record, never an access point's clock: an AP that is
 * hours ahead cannot close the windows of others, and one that is hours behind is not late. Each AP's own event time is
 * kept where its batches are put in order (oal.stream.process). So the watermark means "everything that the brokers
 * received until then has been read", which limits waiting.
 *
 * <p>Who knows how far a partition has been read makes the watermarks: the reader ({@link AlignedReader}). What is here
 * keeps partitions in step, so that catching up after an outage gives every batch its counterpart: a partition that is
 * further ahead of the slowest than the drift is not read until the slowest has followed. What waits of an access point
 * then is what it sends in that time, whatever the outage's length.
 */
public final class BrokerTime {
    /** The samples, packets and events of one job. */
    private static final String GROUP = "batches";
    /** How often readers tell how far they are. In between, the fastest may run ahead by what is read in this time. */
    static final Duration UPDATE = Duration.ofMillis(100);

    private BrokerTime() {}

    /**
     * @param drift how far one partition may be read ahead of the slowest, in the broker's time: less than half of what
     *     can wait for its counterpart, for what has been polled comes on top
     */
    public static WatermarkStrategy<RawBatch> aligned(Duration drift) {
        if (drift.toMillis() < 1000 || drift.toMillis() > ApOperator.HOLDS_MS / 2) {
            throw new IllegalArgumentException("source.drift.ms must be 1000 to " + ApOperator.HOLDS_MS / 2 + ", not "
                    + drift.toMillis() + ": batches that wait for their counterpart would be given up");
        }
        return WatermarkStrategy.<RawBatch>forGenerator(context -> new NoWatermarksGenerator<>())
                .withTimestampAssigner((batch, recordTimestamp) -> batch.kafkaTsMs)
                .withWatermarkAlignment(GROUP, drift, UPDATE);
    }
}
