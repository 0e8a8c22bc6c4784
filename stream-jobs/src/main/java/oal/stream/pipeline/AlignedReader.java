package oal.stream.pipeline;

import java.time.InstantSource;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import oal.stream.codec.RawBatch;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.SourceEvent;
import org.apache.flink.api.connector.source.SourceOutput;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.core.io.InputStatus;

/**
 * A reader that gives each of its partitions a watermark: how far that has been read ({@link ReadProgress}). Flink
 * pauses those that are too far ahead of the slowest of all readers. It learns of the others ten times a second at
 * best, so this reader keeps its own partitions in step at once, and goes no faster than Flink can follow; and it
 * begins slowly, for another reader may begin later.
 */
@SuppressWarnings("try") // Flink's readers may throw anything when they are closed
final class AlignedReader<SplitT extends SourceSplit> implements SourceReader<RawBatch, SplitT> {
    private static final long TICK_MS = 100;
    /** A partition that was read this much further says so at once. */
    private static final long SAY_MS = 500;
    /** Records of a partition that are read before it is known of all how far they are. */
    static final int FIRST = 20;
    /** How far ahead of the slowest a partition is read in a tick: 30 times as fast as it was written, */
    static final long STEP_MS = 3000;
    /** and for so long after the start 3 times. */
    static final long SLOW_MS = 5000;
    private static final long SLOW_STEP_MS = 300;

    private final SourceReader<RawBatch, SplitT> inner;
    private final PartitionEnds<SplitT> ends;
    private final InstantSource clock;
    private final Map<String, Partition> partitions = new HashMap<>();
    private Output output;
    private final long behindMs;
    private final UncommittedBytes bytes;
    private long nextTickMs = Long.MIN_VALUE;
    /** When it was first known of all partitions how far they are; Long.MAX_VALUE: it is not. */
    private long knownMs = Long.MAX_VALUE;
    /** A partition that was read further is not read on until the slowest has followed. */
    private long limitMs = Long.MAX_VALUE;

    AlignedReader(SourceReader<RawBatch, SplitT> inner, PartitionEnds<SplitT> ends, long behindMs,
            UncommittedBytes bytes, InstantSource clock) {
        this.bytes = bytes;
        this.inner = inner;
        this.ends = ends;
        this.behindMs = behindMs;
        this.clock = clock;
    }

    @Override
    public InputStatus pollNext(ReaderOutput<RawBatch> to) throws Exception {
        if (bytes.full()) return InputStatus.NOTHING_AVAILABLE; // and no partition is silent meanwhile
        if (output == null || output.to != to) output = new Output(to);
        long nowMs = clock.millis();
        if (nowMs >= nextTickMs || nextTickMs > nowMs + TICK_MS) {
            nextTickMs = nowMs + TICK_MS;
            ends.refresh(nowMs);
            partitions.forEach((id, partition) -> partition.tick(id, nowMs));
            limit(nowMs);
        }
        return inner.pollNext(output);
    }

    private void limit(long nowMs) {
        long slowestMs = Long.MAX_VALUE;
        for (Partition partition : partitions.values()) slowestMs = Math.min(slowestMs, partition.emittedMs);
        if (slowestMs == Long.MIN_VALUE || slowestMs == Long.MAX_VALUE) return;
        if (knownMs == Long.MAX_VALUE) knownMs = nowMs;
        limitMs = slowestMs + (nowMs - knownMs < SLOW_MS ? SLOW_STEP_MS : STEP_MS);
        partitions.forEach((id, partition) -> partition.holdAhead(id));
    }

    /** Also when nothing comes, for the next tick. */
    @Override
    public CompletableFuture<Void> isAvailable() {
        CompletableFuture<Void> more = inner.isAvailable();
        if (more.isDone() && !bytes.full()) return more;
        CompletableFuture<Void> tick = new CompletableFuture<Void>().completeOnTimeout(null, TICK_MS,
                TimeUnit.MILLISECONDS);
        return bytes.full() ? tick : CompletableFuture.anyOf(more, tick).thenAccept(either -> {});
    }

    @Override
    public void addSplits(List<SplitT> splits) {
        for (SplitT split : splits) partitions.putIfAbsent(split.splitId(), new Partition());
        knownMs = Long.MAX_VALUE;
        nextTickMs = Long.MIN_VALUE;
        ends.watch(splits);
        inner.addSplits(splits);
    }

    @Override
    public void pauseOrResumeSplits(Collection<String> pause, Collection<String> resume) {
        for (String id : pause) partitions.get(id).pausedByFlink(id, true);
        for (String id : resume) partitions.get(id).pausedByFlink(id, false);
    }

    @Override
    public void start() {
        inner.start();
    }

    @Override
    public List<SplitT> snapshotState(long checkpointId) {
        bytes.snapshot(checkpointId);
        return inner.snapshotState(checkpointId);
    }

    @Override
    public void notifyNoMoreSplits() {
        inner.notifyNoMoreSplits();
    }

    @Override
    public void handleSourceEvents(SourceEvent event) {
        inner.handleSourceEvents(event);
    }

    @Override
    public void notifyCheckpointComplete(long checkpointId) throws Exception {
        bytes.complete(checkpointId);
        inner.notifyCheckpointComplete(checkpointId);
    }

    @Override
    public void notifyCheckpointAborted(long checkpointId) throws Exception {
        bytes.aborted(checkpointId);
        inner.notifyCheckpointAborted(checkpointId);
    }

    @Override
    public void close() throws Exception {
        try {
            ends.close();
        } finally {
            inner.close();
        }
    }

    private final class Partition {
        private final ReadProgress progress = new ReadProgress(behindMs);
        private long emittedMs = Long.MIN_VALUE;
        private int records;
        private boolean byFlink;
        private boolean ahead;

        void pausedByFlink(String id, boolean yes) {
            pause(id, yes, ahead);
        }

        /** Paused while it is ahead of the limit. */
        void holdAhead(String id) {
            pause(id, byFlink, knownMs == Long.MAX_VALUE ? records >= FIRST : emittedMs > limitMs);
        }

        private void pause(String id, boolean flink, boolean here) {
            boolean before = byFlink || ahead;
            byFlink = flink;
            ahead = here;
            if (before == (flink || here)) return;
            progress.paused(!before);
            if (before) inner.pauseOrResumeSplits(List.of(), List.of(id));
            else inner.pauseOrResumeSplits(List.of(id), List.of());
        }

        void read(String id, RawBatch batch, SourceOutput<RawBatch> to) {
            if (knownMs == Long.MAX_VALUE && ++records == FIRST) holdAhead(id);
            bytes.read(batch.value.length);
            progress.read(batch.offset, batch.kafkaTsMs);
            long readMs = progress.readMs(clock.millis());
            if (readMs - SAY_MS < emittedMs) return;
            emit(readMs, to);
            holdAhead(id);
        }

        void tick(String id, long nowMs) {
            progress.tick(nowMs, ends.start(id), ends.end(id), ends.answeredMs());
            long readMs = progress.readMs(nowMs);
            if (readMs > emittedMs) emit(readMs, output.to.createOutputForSplit(id));
            // Flink takes a new partition for idle, and it holds nothing back.
            else if (emittedMs == Long.MIN_VALUE) output.to.createOutputForSplit(id).markActive();
        }

        private void emit(long readMs, SourceOutput<RawBatch> to) {
            emittedMs = readMs;
            to.emitWatermark(new Watermark(readMs - 1)); // more may come of the same millisecond
        }
    }

    /** Notes what is read, and hands it on. */
    private final class Output implements ReaderOutput<RawBatch> {
        private final ReaderOutput<RawBatch> to;

        Output(ReaderOutput<RawBatch> to) {
            this.to = to;
        }

        @Override
        public SourceOutput<RawBatch> createOutputForSplit(String id) {
            return new SplitOutput(id, to.createOutputForSplit(id), partitions.get(id));
        }

        @Override
        public void releaseOutputForSplit(String id) {
            to.releaseOutputForSplit(id);
            partitions.remove(id);
        }

        @Override
        public void collect(RawBatch batch) {
            throw new IllegalStateException("a batch belongs to a partition");
        }

        @Override
        public void collect(RawBatch batch, long timestampMs) {
            collect(batch);
        }

        @Override
        public void emitWatermark(Watermark watermark) {}

        @Override
        public void markIdle() {}

        @Override
        public void markActive() {}
    }

    private final class SplitOutput implements SourceOutput<RawBatch> {
        private final String id;
        private final SourceOutput<RawBatch> to;
        private final Partition partition;

        SplitOutput(String id, SourceOutput<RawBatch> to, Partition partition) {
            this.id = id;
            this.to = to;
            this.partition = partition;
        }

        @Override
        public void collect(RawBatch batch) {
            to.collect(batch);
            partition.read(id, batch, to);
        }

        @Override
        public void collect(RawBatch batch, long timestampMs) {
            to.collect(batch, timestampMs);
            partition.read(id, batch, to);
        }

        @Override
        public void emitWatermark(Watermark watermark) {}

        @Override
        public void markIdle() {}

        @Override
        public void markActive() {}
    }
}
