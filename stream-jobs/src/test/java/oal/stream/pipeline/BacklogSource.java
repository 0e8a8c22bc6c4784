package oal.stream.pipeline;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import oal.stream.codec.RawBatch;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * Partitions that were written while the job was away, in this process: read in turn, each so many records at a time,
 * as Kafka gives equal bytes of topics whose records are not equal. It ends with the last record.
 */
final class BacklogSource implements Source<RawBatch, BacklogSource.Partition, Boolean> {
    private static final long serialVersionUID = 1L;
    private static final Map<String, Map<String, List<RawBatch>>> RECORDS = new ConcurrentHashMap<>();

    private final String id = UUID.randomUUID().toString();
    private final LinkedHashMap<String, Integer> atATime;

    /** @param atATime of each partition, by its name, how many records are read in turn */
    BacklogSource(Map<String, List<RawBatch>> records, LinkedHashMap<String, Integer> atATime) {
        RECORDS.put(id, records);
        this.atATime = atATime;
    }

    record Partition(String splitId, int next) implements SourceSplit {}

    /** As a broker would say it. */
    PartitionEnds<Partition> ends() {
        return new PartitionEnds<>() {
            private long askedMs;

            @Override
            public void watch(List<Partition> splits) {}

            @Override
            public void refresh(long nowMs) {
                askedMs = nowMs;
            }

            @Override
            public End end(String splitId) {
                return new End(RECORDS.get(id).get(splitId).size(), askedMs);
            }

            @Override
            public long start(String splitId) {
                return 0;
            }

            @Override
            public long answeredMs() {
                return askedMs;
            }

            @Override
            public void close() {}
        };
    }

    @Override
    public SourceReader<RawBatch, Partition> createReader(SourceReaderContext context) {
        return new Reader();
    }

    private final class Reader implements SourceReader<RawBatch, Partition> {
        private final LinkedHashMap<String, Integer> next = new LinkedHashMap<>();
        private final Set<String> paused = new HashSet<>();
        private CompletableFuture<Void> change = new CompletableFuture<>();
        private List<String> turns = new ArrayList<>();

        @Override
        public InputStatus pollNext(ReaderOutput<RawBatch> output) {
            if (turns.isEmpty()) {
                next.forEach((name, from) -> {
                    if (paused.contains(name) || from == RECORDS.get(id).get(name).size()) return;
                    for (int i = 0; i < atATime.get(name); i++) turns.add(name);
                });
            }
            if (turns.isEmpty()) return InputStatus.NOTHING_AVAILABLE;
            String name = turns.remove(0);
            List<RawBatch> records = RECORDS.get(id).get(name);
            if (next.get(name) < records.size()) {
                RawBatch batch = records.get(next.merge(name, 1, Integer::sum) - 1);
                output.createOutputForSplit(name).collect(batch, batch.kafkaTsMs);
            }
            return InputStatus.MORE_AVAILABLE;
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            boolean some = next.keySet().stream().anyMatch(name -> !paused.contains(name)
                    && next.get(name) < RECORDS.get(id).get(name).size());
            return some ? CompletableFuture.completedFuture(null) : change;
        }

        @Override
        public void pauseOrResumeSplits(Collection<String> pause, Collection<String> resume) {
            paused.addAll(pause);
            paused.removeAll(resume);
            changed();
        }

        @Override
        public void addSplits(List<Partition> splits) {
            for (Partition split : splits) next.put(split.splitId(), split.next());
            changed();
        }

        private void changed() {
            change.complete(null);
            change = new CompletableFuture<>();
        }

        @Override
        public List<Partition> snapshotState(long checkpointId) {
            return next.entrySet().stream().map(e -> new Partition(e.getKey(), e.getValue())).toList();
        }

        @Override
        public void start() {}

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SplitEnumerator<Partition, Boolean> createEnumerator(SplitEnumeratorContext<Partition> context) {
        return restoreEnumerator(context, false);
    }

    @Override
    public SplitEnumerator<Partition, Boolean> restoreEnumerator(SplitEnumeratorContext<Partition> context,
            Boolean given) {
        return new SplitEnumerator<>() {
            private boolean done = given;

            @Override
            public void start() {}

            @Override
            public void handleSplitRequest(int subtask, String host) {}

            @Override
            public void addSplitsBack(List<Partition> splits, int subtask) {}

            /** Partitions go to readers in turn, so that topics of one access point are with different readers. */
            @Override
            public void addReader(int subtask) {
                if (done || context.registeredReaders().size() < context.currentParallelism()) return;
                done = true;
                int n = 0;
                for (String name : atATime.keySet()) {
                    context.assignSplit(new Partition(name, 0), n++ % context.currentParallelism());
                }
            }

            @Override
            public Boolean snapshotState(long checkpointId) {
                return done;
            }

            @Override
            public void close() {}
        };
    }

    @Override
    public SimpleVersionedSerializer<Partition> getSplitSerializer() {
        return new Text<>() {
            @Override
            String text(Partition split) {
                return split.next() + " " + split.splitId();
            }

            @Override
            Partition of(String text) {
                String[] of = text.split(" ", 2);
                return new Partition(of[1], Integer.parseInt(of[0]));
            }
        };
    }

    @Override
    public SimpleVersionedSerializer<Boolean> getEnumeratorCheckpointSerializer() {
        return new Text<>() {
            @Override
            String text(Boolean given) {
                return given.toString();
            }

            @Override
            Boolean of(String text) {
                return Boolean.valueOf(text);
            }
        };
    }

    private abstract static class Text<T> implements SimpleVersionedSerializer<T> {
        abstract String text(T value);

        abstract T of(String text);

        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(T value) throws IOException {
            return text(value).getBytes(java.nio.charset.StandardCharsets.UTF_8);
        }

        @Override
        public T deserialize(int version, byte[] bytes) {
            return of(new String(bytes, java.nio.charset.StandardCharsets.UTF_8));
        }
    }
}
