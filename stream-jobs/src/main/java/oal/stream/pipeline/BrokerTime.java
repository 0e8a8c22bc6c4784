package oal.stream.pipeline;

import java.time.Duration;
import java.time.InstantSource;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import oal.stream.codec.RawBatch;

/**
 * The stream's time is the time at which the broker took a record, never an access point's clock: an AP that is hours ahead cannot close
 * the windows of others, and one that is hours behind is not late. Each AP's own event time is kept where its batches are put in order
 * (oal.stream.process). The watermark therefore says "all that the brokers took until then has been read", which is what bounds waiting.
 *
 * <p>A topic with CreateTime carries the sender's clock after all, so no record counts as later than now.
 */
public final class BrokerTime {
    private BrokerTime() {}

    /** @param idle a partition without records for so long does not hold back the others */
    public static WatermarkStrategy<RawBatch> watermarks(Duration idle) {
        return WatermarkStrategy.<RawBatch>forGenerator(context -> new Generator(InstantSource.system()))
                .withTimestampAssigner((batch, recordTimestamp) -> batch.kafkaTsMs)
                .withIdleness(idle);
    }

    static final class Generator implements WatermarkGenerator<RawBatch> {
        private final InstantSource clock;
        private long latestMs = Long.MIN_VALUE;

        Generator(InstantSource clock) {
            this.clock = clock;
        }

        @Override
        public void onEvent(RawBatch batch, long timestampMs, WatermarkOutput output) {
            if (timestampMs > latestMs) latestMs = Math.max(latestMs, Math.min(timestampMs, clock.millis()));
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput output) {
            if (latestMs != Long.MIN_VALUE) output.emitWatermark(new Watermark(latestMs - 1));
        }
    }
}
