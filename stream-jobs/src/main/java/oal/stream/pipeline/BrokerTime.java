package oal.stream.pipeline;

import java.time.Duration;
import java.time.InstantSource;
import oal.stream.codec.RawBatch;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.util.clock.RelativeClock;

/**
 * The stream's time is the time at which the broker received a record, never an access point's clock: an AP that is
 * hours ahead cannot close the windows of others, and one that is hours behind is not late. Each AP's own event time is
 * kept where its batches are put in order (oal.stream.process). So the watermark means "everything that the brokers
 * received until then has been read", which limits waiting.
 *
 * <p>A topic with CreateTime has the sender's clock instead, so no record counts as later than now.
 */
public final class BrokerTime {
    private BrokerTime() {}

    /**
     * @param idle a partition without records for so long counts as read up to this long ago. It is not left out: after
     *     an outage of the broker all partitions have been silent, and the first to speak again would run ahead of what
     *     the others still hold
     */
    public static WatermarkStrategy<RawBatch> watermarks(Duration idle) {
        return WatermarkStrategy.<RawBatch>forGenerator(context -> new Generator(InstantSource.system(),
                context.getInputActivityClock(), idle))
                .withTimestampAssigner((batch, recordTimestamp) -> batch.kafkaTsMs);
    }

    static final class Generator implements WatermarkGenerator<RawBatch> {
        private final InstantSource clock;
        /** Does not advance while the job holds the source back: a partition that may not be read is not silent. */
        private final RelativeClock activity;
        private final long idleMs;
        private long latestMs = Long.MIN_VALUE;
        private long silentSinceMs;

        Generator(InstantSource clock, RelativeClock activity, Duration idle) {
            this.clock = clock;
            this.activity = activity;
            idleMs = idle.toMillis();
            silentSinceMs = activity.relativeTimeMillis();
        }

        @Override
        public void onEvent(RawBatch batch, long timestampMs, WatermarkOutput output) {
            silentSinceMs = activity.relativeTimeMillis();
            if (timestampMs > latestMs) latestMs = Math.max(latestMs, Math.min(timestampMs, clock.millis()));
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput output) {
            if (activity.relativeTimeMillis() - silentSinceMs >= idleMs) {
                latestMs = Math.max(latestMs, clock.millis() - idleMs);
            }
            // A new partition counts as idle, and holds nothing back, until it emits a watermark.
            if (latestMs == Long.MIN_VALUE) output.markActive();
            else output.emitWatermark(new Watermark(latestMs - 1));
        }
    }
}
