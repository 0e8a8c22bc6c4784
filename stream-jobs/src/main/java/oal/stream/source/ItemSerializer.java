package oal.stream.source;

import java.nio.charset.StandardCharsets;
import oal.stream.codec.OutputTopics;
import oal.stream.item.TrainingItem;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Items keyed by their access point, so that one reader gets all items of an AP in order. */
final class ItemSerializer extends TopicSerializer<TrainingItem> {
    private static final long serialVersionUID = 1;

    ItemSerializer() {
        super(OutputTopics.ITEMS);
    }

    @Override
    public ProducerRecord<byte[], byte[]> serialize(TrainingItem item, KafkaSinkContext context, Long timestamp) {
        return new ProducerRecord<>(topic, item.apId.getBytes(StandardCharsets.UTF_8), item.json);
    }
}
