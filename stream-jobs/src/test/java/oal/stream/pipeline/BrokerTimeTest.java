package oal.stream.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.RawBatch;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.util.clock.RelativeClock;
import org.junit.jupiter.api.Test;

class BrokerTimeTest {
    private static final long NOW_MS = 1_800_000_000_000L;

    private boolean active;
    private static final long IDLE_MS = 30_000;

    private final List<Long> emitted = new ArrayList<>();
    private final WatermarkOutput output = new WatermarkOutput() {
        @Override
        public void emitWatermark(Watermark watermark) {
            emitted.add(watermark.getTimestamp());
        }

        @Override
        public void markIdle() {}

        @Override
        public void markActive() {
            active = true;
        }
    };
    private long nowMs = NOW_MS;
    private long activeMs;
    private final RelativeClock activity = new RelativeClock() {
        @Override
        public long relativeTimeMillis() {
            return activeMs;
        }

        @Override
        public long relativeTimeNanos() {
            return activeMs * 1_000_000;
        }
    };
    private final BrokerTime.Generator generator =
            new BrokerTime.Generator(() -> Instant.ofEpochMilli(nowMs), activity, Duration.ofMillis(IDLE_MS));

    private void pass(long ms, boolean active) {
        nowMs += ms;
        if (active) activeMs += ms;
    }

    private void record(long kafkaTsMs, long apClockUs) {
        RawBatch batch = new BatchBuilder(Topic.SAMPLES, 0, apClockUs).record(kafkaTsMs);
        generator.onEvent(batch, batch.kafkaTsMs, output);
    }

    @Test
    void nothingBeforeTheFirstRecord() {
        generator.onPeriodicEmit(output);
        assertEquals(List.of(), emitted);
        assertTrue(active, "it holds the others back");
    }

    @Test
    void anApClockHoursAheadOrBehindDoesNotMoveIt() {
        record(NOW_MS - 1000, (NOW_MS + 5 * 3_600_000) * 1000);
        generator.onPeriodicEmit(output);
        record(NOW_MS - 900, (NOW_MS - 5 * 3_600_000) * 1000);
        generator.onPeriodicEmit(output);
        assertEquals(List.of(NOW_MS - 1001, NOW_MS - 901), emitted);
    }

    @Test
    void aRecordTimeInTheFutureCountsAsNow() {
        record(NOW_MS + 3_600_000, 0);
        generator.onPeriodicEmit(output);
        assertEquals(List.of(NOW_MS - 1), emitted);
    }

    @Test
    void itNeverGoesBack() {
        record(NOW_MS - 10, 0);
        record(NOW_MS - 5000, 0);
        generator.onPeriodicEmit(output);
        assertEquals(List.of(NOW_MS - 11), emitted);
    }

    @Test
    void aSilentPartitionFollowsTheClockAtADistance() {
        pass(IDLE_MS - 1, true);
        generator.onPeriodicEmit(output);
        assertEquals(List.of(), emitted, "not yet silent long enough");
        pass(1, true);
        generator.onPeriodicEmit(output);
        record(nowMs - 10, 0);
        generator.onPeriodicEmit(output);
        pass(IDLE_MS - 1, true);
        generator.onPeriodicEmit(output);
        assertEquals(List.of(NOW_MS - 1, NOW_MS + IDLE_MS - 11, NOW_MS + IDLE_MS - 11), emitted);
    }

    @Test
    void aPartitionThatMayNotBeReadIsNotSilent() {
        pass(10 * IDLE_MS, false);
        generator.onPeriodicEmit(output);
        assertEquals(List.of(), emitted);
    }
}
