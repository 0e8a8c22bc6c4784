package oal.stream.source;

import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;

/** Exactly-once sinks into Kafka: one transaction per checkpoint, which readers with read_committed see once it is complete. */
final class TopicSink {
    private TopicSink() {}

    /** @param transactions begins every transactional id of this sink; no other sink or job may use it */
    static <T> KafkaSink<T> of(KafkaClient kafka, String transactions, KafkaRecordSerializationSchema<T> serializer) {
        return KafkaSink.<T>builder()
                .setKafkaProducerConfig(kafka.producer())
                .setBootstrapServers(kafka.bootstrapServers())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(transactions)
                .setRecordSerializer(serializer)
                .build();
    }
}
