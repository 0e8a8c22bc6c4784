package oal.stream.source;

import oal.stream.codec.DeadLetter;
import oal.stream.item.TrainingItem;
import oal.stream.neighbour.NeighbourRecord;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;

/**
 * Exactly-once sinks into Kafka: one transaction per checkpoint, which readers with read_committed see once it is
 * complete.
 */
public final class TopicSink {
    private TopicSink() {}

    /** @param transactions begins every transactional id of the job; no other job on the cluster may use it */
    public static KafkaSink<TrainingItem> items(KafkaClient kafka, String transactions) {
        return of(kafka, transactions + "-items", new ItemSerializer());
    }

    /** @param transactions as for {@link #items} */
    public static KafkaSink<DeadLetter> deadLetters(KafkaClient kafka, String transactions) {
        return of(kafka, transactions + "-dead-letters", new DeadLetterSerializer());
    }

    /** @param transactions as for {@link #items} */
    public static KafkaSink<NeighbourRecord> neighbours(KafkaClient kafka, String transactions) {
        return of(kafka, transactions + "-neighbours", new NeighbourSerializer());
    }

    private static <T> KafkaSink<T> of(KafkaClient kafka, String transactions,
            KafkaRecordSerializationSchema<T> serializer) {
        return KafkaSink.<T>builder()
                .setKafkaProducerConfig(kafka.producer())
                .setBootstrapServers(kafka.bootstrapServers())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(transactions)
                .setRecordSerializer(serializer)
                .build();
    }
}
