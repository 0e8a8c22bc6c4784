package oal.stream.source;

import oal.stream.codec.DeadLetter;
import oal.stream.item.TrainingItem;
import oal.stream.neighbour.NeighbourRecord;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;

/**
 * Exactly-once sinks into Kafka: one transaction per checkpoint, which readers with read_committed see once it is
 * complete. Its id is used again by a later checkpoint, so a writer has as many ids as checkpoints that are not yet
 * committed, and one more.
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
            TopicSerializer<T> serializer) {
        return KafkaSink.<T>builder()
                .setKafkaProducerConfig(kafka.producer())
                .setBootstrapServers(kafka.bootstrapServers())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(transactions)
                // The broker remembers each id for seven days: an id a checkpoint would be 1.8 million of them.
                .setTransactionNamingStrategy(TransactionNamingStrategy.POOLING)
                .setRecordSerializer(serializer)
                .build();
    }
}
