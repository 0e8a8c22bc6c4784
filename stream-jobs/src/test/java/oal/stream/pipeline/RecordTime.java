package oal.stream.pipeline;

import oal.stream.codec.RawBatch;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;

/** Watermarks of tests that read no partitions: the broker's time of the latest record. */
public final class RecordTime {
    private RecordTime() {}

    public static WatermarkStrategy<RawBatch> watermarks() {
        return WatermarkStrategy.<RawBatch>forMonotonousTimestamps()
                .withTimestampAssigner((batch, recordTimestamp) -> batch.kafkaTsMs);
    }
}
