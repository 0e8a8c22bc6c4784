package oal.stream.source;

import java.nio.charset.StandardCharsets;
import oal.stream.codec.OutputTopics;
import oal.stream.item.TrainingItem;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Items keyed by their access point, so that one reader gets all items of an AP in order. */
final class ItemSerializer implements KafkaRecordSerializationSchema<TrainingItem> {
    private static final long serialVersionUID = 1;

    @Override
    public ProducerRecord<byte[], byte[]> serialize(TrainingItem item, KafkaSinkContext context, Long timestamp) {
        return new ProducerRecord<>(OutputTopics.ITEMS, item.apId.getBytes(StandardCharsets.UTF_8), item.json);
    }
}
