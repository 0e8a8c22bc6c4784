package oal.stream.source;

import java.util.List;
import java.util.Optional;
import org.apache.flink.connector.kafka.lineage.DefaultKafkaDatasetFacet;
import org.apache.flink.connector.kafka.lineage.DefaultKafkaDatasetIdentifier;
import org.apache.flink.connector.kafka.lineage.KafkaDatasetFacet;
import org.apache.flink.connector.kafka.lineage.KafkaDatasetFacetProvider;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;

/**
 * Serializer of records of one topic. It names the topic, because a sink with pooled transactional ids asks the broker
 * which transactions an earlier run left open there.
 */
abstract class TopicSerializer<T> implements KafkaRecordSerializationSchema<T>, KafkaDatasetFacetProvider {
    private static final long serialVersionUID = 1;

    final String topic;

    TopicSerializer(String topic) {
        this.topic = topic;
    }

    @Override
    public final Optional<KafkaDatasetFacet> getKafkaDatasetFacet() {
        return Optional.of(new DefaultKafkaDatasetFacet(DefaultKafkaDatasetIdentifier.ofTopics(List.of(topic))));
    }
}
