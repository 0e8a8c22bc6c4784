package oal.stream.pipeline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import oal.schema.Topic;
import oal.stream.codec.RawBatch;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.SourceOutput;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.core.io.InputStatus;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Two partitions, a and b, of a source that gives what the test says. */
class AlignedReaderTest {
    private static final long NOW_MS = 1_800_000_000_000L;
    private static final long BEHIND_MS = 60_000;
    /** Of batches of 10 bytes. */
    private static final long MAX_BYTES = 5000;
    /** When the backlog was written. */
    private static final long THEN_MS = NOW_MS - 600_000;

    private record Split(String splitId) implements SourceSplit {}

    /** Gives the records that are put into it, each to its partition, unless that is paused. */
    private static final class Inner implements SourceReader<RawBatch, Split> {
        private final Map<String, List<Long>> records = new HashMap<>();
        private final Map<String, Long> offsets = new HashMap<>();
        private final Set<String> paused = new TreeSet<>();
        private final CompletableFuture<Void> nothing = new CompletableFuture<>();

        void put(String id, long brokerMs) {
            records.computeIfAbsent(id, name -> new ArrayList<>()).add(brokerMs);
        }

        private String next() {
            return records.keySet().stream().filter(id -> !paused.contains(id) && !records.get(id).isEmpty()).sorted()
                    .findFirst().orElse(null);
        }

        @Override
        public InputStatus pollNext(ReaderOutput<RawBatch> output) {
            String id = next();
            if (id == null) return InputStatus.NOTHING_AVAILABLE;
            long brokerMs = records.get(id).remove(0);
            long offset = offsets.merge(id, 1L, Long::sum) - 1;
            output.createOutputForSplit(id).collect(new RawBatch(id, Topic.SAMPLES, new byte[10], brokerMs, 0, offset),
                    brokerMs);
            return InputStatus.MORE_AVAILABLE;
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            return next() == null ? nothing : CompletableFuture.completedFuture(null);
        }

        @Override
        public void pauseOrResumeSplits(Collection<String> pause, Collection<String> resume) {
            for (String id : pause) assertTrue(paused.add(id), id + " was paused");
            for (String id : resume) assertTrue(paused.remove(id), id + " was not paused");
        }

        @Override
        public void start() {}

        @Override
        public List<Split> snapshotState(long checkpointId) {
            return List.of();
        }

        @Override
        public void addSplits(List<Split> splits) {}

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }

    /** What the broker says. */
    private final class Ends implements PartitionEnds<Split> {
        private final Map<String, Long> offsets = new HashMap<>();

        @Override
        public void watch(List<Split> splits) {}

        @Override
        public void refresh(long nowMs) {}

        @Override
        public End end(String id) {
            return offsets.containsKey(id) ? new End(offsets.get(id), nowMs) : null;
        }

        @Override
        public long start(String id) {
            return 0;
        }

        @Override
        public long answeredMs() {
            return Long.MIN_VALUE;
        }

        @Override
        public void close() {}
    }

    /** What Flink gets. */
    private static final class Flink implements ReaderOutput<RawBatch> {
        private final Map<String, Long> watermarks = new HashMap<>();
        private final Set<String> active = new HashSet<>();
        private int records;

        @Override
        public SourceOutput<RawBatch> createOutputForSplit(String id) {
            return new SourceOutput<>() {
                @Override
                public void collect(RawBatch batch) {
                    records++;
                }

                @Override
                public void collect(RawBatch batch, long timestampMs) {
                    records++;
                }

                @Override
                public void emitWatermark(Watermark watermark) {
                    Long before = watermarks.put(id, watermark.getTimestamp());
                    assertTrue(before == null || before < watermark.getTimestamp(), "it goes on");
                }

                @Override
                public void markIdle() {
                    throw new AssertionError("an idle partition would hold back nothing");
                }

                @Override
                public void markActive() {
                    active.add(id);
                }
            };
        }

        @Override
        public void releaseOutputForSplit(String id) {}

        @Override
        public void collect(RawBatch batch) {}

        @Override
        public void collect(RawBatch batch, long timestampMs) {}

        @Override
        public void emitWatermark(Watermark watermark) {}

        @Override
        public void markIdle() {}

        @Override
        public void markActive() {}
    }

    private final Inner inner = new Inner();
    private final Ends ends = new Ends();
    private final Flink flink = new Flink();
    private long nowMs = NOW_MS;
    private AlignedReader<Split> reader;

    @BeforeEach
    void start() {
        reader = new AlignedReader<>(inner, ends, BEHIND_MS, new UncommittedBytes(MAX_BYTES),
                () -> Instant.ofEpochMilli(nowMs));
        reader.addSplits(List.of(new Split("a"), new Split("b")));
        for (int i = 0; i < 1000; i++) inner.put("a", THEN_MS + 250 * i);
    }

    /** Reads all that may be read now; the clock stands still. */
    private void poll() throws Exception {
        while (reader.pollNext(flink) == InputStatus.MORE_AVAILABLE) continue;
    }

    private void tick(int times) throws Exception {
        for (int i = 0; i < times; i++) {
            nowMs += 100;
            poll();
        }
    }

    @Test
    void littleIsReadBeforeItIsKnownHowFarEachPartitionIs() throws Exception {
        tick(100);
        assertEquals(AlignedReader.FIRST, flink.records);
        assertEquals(Set.of("a", "b"), flink.active, "the unknown one holds the others back");
        assertFalse(flink.watermarks.containsKey("b"));
        ends.offsets.put("b", 0L); // it is empty
        tick(1);
        assertEquals(nowMs - BEHIND_MS - 1, flink.watermarks.get("b"));
    }

    @Test
    void noPartitionIsReadFarAheadOfTheSlowest() throws Exception {
        inner.put("b", THEN_MS);
        tick(100); // whose turn comes after the first records of the other
        long ahead = flink.watermarks.get("a") - flink.watermarks.get("b");
        assertTrue(ahead >= AlignedReader.STEP_MS && ahead < 2 * AlignedReader.STEP_MS
                + AlignedReader.FIRST * 250, ahead + " ms ahead");
        assertEquals(Set.of("a"), inner.paused);
        for (int i = 1; i < 100; i++) inner.put("b", THEN_MS + 250 * i);
        int before = flink.records;
        tick(20);
        assertTrue(flink.records > before + 150, "both go on");
    }

    @Test
    void aPartitionAtItsEndHoldsNothingBackAndTheReaderGoesOnAtItsPace() throws Exception {
        ends.offsets.put("b", 0L);
        tick(1);
        long slowly = flink.watermarks.get("a");
        tick(10);
        assertTrue(flink.watermarks.get("a") - slowly <= 10 * 800, "slowly at first");
        tick((int) AlignedReader.SLOW_MS / 100);
        long from = flink.watermarks.get("a");
        tick(10);
        long step = (flink.watermarks.get("a") - from) / 10;
        assertTrue(step >= AlignedReader.STEP_MS / 2 && step <= AlignedReader.STEP_MS + 600, step + " ms a tick");
    }

    @Test
    void whatFlinkPausedStaysPausedUntilFlinkResumesIt() throws Exception {
        ends.offsets.put("b", 0L);
        tick(1);
        reader.pauseOrResumeSplits(List.of("a"), List.of());
        int before = flink.records;
        tick(50);
        assertEquals(before, flink.records);
        reader.pauseOrResumeSplits(List.of(), List.of("a"));
        tick(1);
        assertTrue(flink.records > before);
    }

    /** The checkpoint store is away: checkpoints begin, and none is complete. */
    @Test
    void noMoreIsReadThanMayBeHeldUntilACheckpointIsComplete() throws Exception {
        ends.offsets.put("b", 0L);
        for (int checkpoint = 1; checkpoint <= 50; checkpoint++) {
            tick(20);
            reader.snapshotState(checkpoint);
            if (checkpoint % 2 == 0) reader.notifyCheckpointAborted(checkpoint);
        }
        assertEquals(MAX_BYTES / 10, flink.records);
        reader.isAvailable().get(60, TimeUnit.SECONDS); // to look whether one is complete
        reader.snapshotState(51);
        reader.notifyCheckpointComplete(51);
        tick(20);
        assertTrue(flink.records > MAX_BYTES / 10 + 100, flink.records + " records");
        reader.notifyCheckpointComplete(49); // an old one
        tick(1000);
        assertEquals(2 * MAX_BYTES / 10, flink.records);
    }

    @Test
    void itIsAvailableForItsNextTickThoughNothingComes() throws Exception {
        reader.isAvailable().get(60, TimeUnit.SECONDS); // records
        tick(1);
        CompletableFuture<Void> held = reader.isAvailable();
        held.get(60, TimeUnit.SECONDS);
        inner.records.clear();
        reader.isAvailable().get(60, TimeUnit.SECONDS);
    }
}
