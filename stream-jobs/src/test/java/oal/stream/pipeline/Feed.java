package oal.stream.pipeline;

import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import oal.stream.codec.RawBatch;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * A stream that gives some elements and then nothing more without ending, as a topic does. For jobs in this process.
 */
final class Feed<T> implements FlatMapFunction<Long, T> {
    private static final long serialVersionUID = 1L;

    private static final Map<String, List<?>> ELEMENTS = new ConcurrentHashMap<>();

    private final String id = UUID.randomUUID().toString();
    private boolean given;

    private Feed(List<T> elements) {
        ELEMENTS.put(id, List.copyOf(elements));
    }

    static <T> DataStream<T> of(StreamExecutionEnvironment env, String uid, Class<T> type, List<T> elements) {
        return env.fromSource(new NumberSequenceSource(0, Long.MAX_VALUE - 1), WatermarkStrategy.noWatermarks(), uid)
                .uid(uid).setParallelism(1)
                .flatMap(new Feed<>(elements)).uid(uid + "-feed").setParallelism(1).returns(TypeInformation.of(type));
    }

    static DataStream<RawBatch> batches(StreamExecutionEnvironment env, List<RawBatch> elements) {
        return of(env, "test-batches", RawBatch.class, elements).assignTimestampsAndWatermarks(
                RecordTime.watermarks()).uid("test-times").setParallelism(1);
    }

    @Override
    @SuppressWarnings("unchecked")
    public void flatMap(Long number, Collector<T> out) throws InterruptedException {
        if (!given) ((List<T>) ELEMENTS.get(id)).forEach(out::collect);
        given = true;
        Thread.sleep(1);
    }
}
