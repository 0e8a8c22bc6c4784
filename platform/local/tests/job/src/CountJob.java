import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Reads "key,number" from ap.samples.v1 and writes "key,number,count" to training.items.v1 exactly once, where count is
 * how many records of that key came so far. So the output shows a lost record, a repeated one, and state that went back
 * or forth.
 */
public final class CountJob {
    public static void main(String[] args) throws Exception {
        Properties all = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(args[1]), StandardCharsets.UTF_8)) {
            all.load(reader);
        }
        Properties kafka = new Properties();
        all.stringPropertyNames().stream().filter(name -> name.startsWith("kafka."))
            .forEach(name -> kafka.setProperty(name.substring(6), all.getProperty(name)));

        KafkaSource<String> source = KafkaSource.<String>builder().setProperties(kafka)
            .setTopics("ap.samples.v1").setGroupId("oal-count").setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema()).build();
        KafkaSink<String> sink = KafkaSink.<String>builder().setKafkaProducerConfig(kafka)
            .setBootstrapServers(kafka.getProperty("bootstrap.servers"))
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE).setTransactionalIdPrefix("oal-count")
            .setProperty("transaction.timeout.ms", "600000")
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder().setTopic("training.items.v1")
                .setValueSerializationSchema(new SimpleStringSchema()).build())
            .build();

        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.fromSource(source, WatermarkStrategy.noWatermarks(), "source").uid("source")
            .keyBy(line -> line.substring(0, line.indexOf(','))).process(new Count()).uid("count")
            .sinkTo(sink).uid("sink");
        env.execute("count");
    }

    private static final class Count extends KeyedProcessFunction<String, String, String> {
        private static final long serialVersionUID = 1;
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override
        public void processElement(String line, Context context, Collector<String> out) throws Exception {
            long next = (count.value() == null ? 0 : count.value()) + 1;
            count.update(next);
            out.collect(line + "," + next);
        }
    }
}
