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
 * A reader that gives each of its partitions a watermark: how far that has been read ({@link ReadProgress}). It begins
 * slowly: until it knows of each partition how far it is, and all readers know of each other, little is read.
 */
final class AlignedReader<SplitT extends SourceSplit> implements SourceReader<RawBatch, SplitT> {
    private static final long TICK_MS = 100;
    /** A partition that was read this much further says so at once, and can be paused at once. */
    private static final long STEP_MS = 500;
    /** Records for each partition that are read at first. */
    static final int FIRST = 20;
    /** After all partitions are known, readers are told of each other's progress within this time. */
    private static final long TOLD_MS = 3 * BrokerTime.UPDATE.toMillis();

    private final SourceReader<RawBatch, SplitT> inner;
    private final PartitionEnds<SplitT> ends;
    private final InstantSource clock;
    private final Map<String, Partition> partitions = new HashMap<>();
    private Output output;
    private final long behindMs;
    private long nextTickMs = Long.MIN_VALUE;
    private long records;
    private boolean underWay;
    private long knownMs = Long.MAX_VALUE;

    AlignedReader(SourceReader<RawBatch, SplitT> inner, PartitionEnds<SplitT> ends, long behindMs,
            InstantSource clock) {
        this.inner = inner;
        this.ends = ends;
        this.behindMs = behindMs;
        this.clock = clock;
    }

    @Override
    public InputStatus pollNext(ReaderOutput<RawBatch> to) throws Exception {
        if (output == null || output.to != to) output = new Output(to);
        long nowMs = clock.millis();
        if (nowMs >= nextTickMs || nextTickMs > nowMs + TICK_MS) {
            nextTickMs = nowMs + TICK_MS;
            ends.refresh(nowMs);
            partitions.forEach((id, partition) -> partition.tick(id, nowMs));
            if (!underWay) underWay = underWay(nowMs);
        }
        return held() ? InputStatus.NOTHING_AVAILABLE : inner.pollNext(output);
    }

    private boolean underWay(long nowMs) {
        boolean known = partitions.values().stream().allMatch(partition -> partition.emittedMs != Long.MIN_VALUE);
        if (!known) knownMs = Long.MAX_VALUE;
        else if (knownMs == Long.MAX_VALUE) knownMs = nowMs;
        return known && nowMs - knownMs >= TOLD_MS;
    }

    private boolean held() {
        return !underWay && records >= (long) FIRST * partitions.size();
    }

    /** Also when nothing comes, for the next tick. */
    @Override
    public CompletableFuture<Void> isAvailable() {
        CompletableFuture<Void> more = inner.isAvailable();
        if (more.isDone() && !held()) return more;
        CompletableFuture<Void> tick = new CompletableFuture<Void>().completeOnTimeout(null, TICK_MS,
                TimeUnit.MILLISECONDS);
        return held() ? tick : CompletableFuture.anyOf(more, tick).thenAccept(either -> {});
    }

    @Override
    public void addSplits(List<SplitT> splits) {
        for (SplitT split : splits) partitions.putIfAbsent(split.splitId(), new Partition());
        underWay = false;
        records = 0;
        ends.watch(splits);
        inner.addSplits(splits);
    }

    @Override
    public void pauseOrResumeSplits(Collection<String> pause, Collection<String> resume) {
        for (String id : pause) partitions.get(id).progress.paused(true);
        for (String id : resume) partitions.get(id).progress.paused(false);
        inner.pauseOrResumeSplits(pause, resume);
    }

    @Override
    public void start() {
        inner.start();
    }

    @Override
    public List<SplitT> snapshotState(long checkpointId) {
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
        inner.notifyCheckpointComplete(checkpointId);
    }

    @Override
    public void notifyCheckpointAborted(long checkpointId) throws Exception {
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

        void read(RawBatch batch, SourceOutput<RawBatch> to) {
            records++;
            progress.read(batch.offset, batch.kafkaTsMs);
            long readMs = progress.readMs(clock.millis());
            if (readMs - STEP_MS >= emittedMs) emit(readMs, to);
        }

        void tick(String id, long nowMs) {
            progress.tick(nowMs, ends.start(id), ends.end(id), ends.answeredMs());
            long readMs = progress.readMs(nowMs);
            if (readMs > emittedMs) emit(readMs, output.to.createOutputForSplit(id));
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
            return new SplitOutput(to.createOutputForSplit(id), partitions.get(id));
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
        private final SourceOutput<RawBatch> to;
        private final Partition partition;

        SplitOutput(SourceOutput<RawBatch> to, Partition partition) {
            this.to = to;
            this.partition = partition;
        }

        @Override
        public void collect(RawBatch batch) {
            to.collect(batch);
            partition.read(batch, to);
        }

        @Override
        public void collect(RawBatch batch, long timestampMs) {
            to.collect(batch, timestampMs);
            partition.read(batch, to);
        }

        @Override
        public void emitWatermark(Watermark watermark) {}

        @Override
        public void markIdle() {}

        @Override
        public void markActive() {}
    }
}
