package oal.stream.source;

import java.nio.charset.StandardCharsets;
import oal.stream.codec.OutputTopics;
import oal.stream.neighbour.NeighbourRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Neighbours, keyed by channel: the topic is compacted, so that a reader finds the latest record of each. A record
 * without a value withdraws it.
 */
final class NeighbourSerializer extends TopicSerializer<NeighbourRecord> {
    private static final long serialVersionUID = 1;

    NeighbourSerializer() {
        super(OutputTopics.NEIGHBOURS);
    }

    @Override
    public ProducerRecord<byte[], byte[]> serialize(NeighbourRecord record, KafkaSinkContext context, Long timestamp) {
        return new ProducerRecord<>(topic, record.channel.getBytes(StandardCharsets.UTF_8),
                record.json);
    }
}
