package oal.stream.pipeline;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * Keeps what completed checkpoints committed, each part once by its token, as the sink of ClickHouse does. For
 * jobs in this process.
 */
final class CommitSink<T> implements Sink<T>, SupportsCommitter<String> {
    private static final long serialVersionUID = 1L;
    private static final Map<String, List<Object>> WRITTEN = new ConcurrentHashMap<>();
    private static final Map<String, List<Object>> KEPT = new ConcurrentHashMap<>();
    private static final Set<String> DONE = ConcurrentHashMap.newKeySet();

    private final String id = UUID.randomUUID().toString();

    @Override
    public CommittingSinkWriter<T, String> createWriter(WriterInitContext context) {
        return new CommittingSinkWriter<>() {
            private List<Object> open = new ArrayList<>();

            @Override
            public void write(T element, Context c) {
                open.add(element);
            }

            @Override
            public void flush(boolean endOfInput) {}

            @Override
            public Collection<String> prepareCommit() {
                if (open.isEmpty()) return List.of();
                String token = UUID.randomUUID().toString();
                WRITTEN.put(token, open);
                open = new ArrayList<>();
                return List.of(token);
            }

            @Override
            public void close() {}
        };
    }

    @Override
    public Committer<String> createCommitter(CommitterInitContext context) {
        return new Committer<>() {
            @Override
            public void commit(Collection<CommitRequest<String>> requests) {
                for (CommitRequest<String> r : requests) {
                    if (!DONE.add(r.getCommittable())) continue;
                    KEPT.computeIfAbsent(id, k -> new CopyOnWriteArrayList<>()).addAll(WRITTEN.get(r.getCommittable()));
                }
            }

            @Override
            public void close() {}
        };
    }

    @Override
    public SimpleVersionedSerializer<String> getCommittableSerializer() {
        return new SimpleVersionedSerializer<>() {
            @Override
            public int getVersion() {
                return 1;
            }

            @Override
            public byte[] serialize(String token) {
                return token.getBytes(StandardCharsets.UTF_8);
            }

            @Override
            public String deserialize(int version, byte[] bytes) {
                return new String(bytes, StandardCharsets.UTF_8);
            }
        };
    }

    @SuppressWarnings("unchecked")
    List<T> kept() {
        return (List<T>) KEPT.getOrDefault(id, List.of());
    }
}
