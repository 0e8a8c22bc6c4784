package oal.stream.pipeline;

import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;

/** Keeps what it gets, for the test that made it. For jobs in this process. */
public final class CollectSink<T> implements Sink<T> {
    private static final long serialVersionUID = 1L;
    private static final Map<String, List<Object>> KEPT = new ConcurrentHashMap<>();

    private final String id = UUID.randomUUID().toString();

    @Override
    public SinkWriter<T> createWriter(WriterInitContext context) {
        return new SinkWriter<>() {
            @Override
            public void write(T element, Context c) {
                KEPT.computeIfAbsent(id, k -> new CopyOnWriteArrayList<>()).add(element);
            }

            @Override
            public void flush(boolean endOfInput) {}

            @Override
            public void close() {}
        };
    }

    @SuppressWarnings("unchecked")
    public List<T> kept() {
        return (List<T>) KEPT.getOrDefault(id, List.of());
    }
}
