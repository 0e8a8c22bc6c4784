package oal.stream.source;

import java.time.Duration;
import java.util.Arrays;
import oal.schema.Topic;
import oal.stream.codec.RawBatch;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;

/** All that access points write, as one source: one watermark over samples, packets and events, so that none runs ahead. */
public final class BatchSource {
    private BatchSource() {}

    /**
     * @param fromEarliest where to begin in a partition for which neither a checkpoint nor the consumer group has an offset
     * @param discovery how often to look for new partitions
     */
    public static KafkaSource<RawBatch> of(KafkaClient kafka, boolean fromEarliest, Duration discovery) {
        return KafkaSource.<RawBatch>builder()
                .setProperties(kafka.consumer())
                .setProperty("partition.discovery.interval.ms", Long.toString(discovery.toMillis()))
                // Offsets are in the checkpoint; the group's are for those who watch the lag, and for a start without a checkpoint.
                .setProperty("commit.offsets.on.checkpoint", "true")
                .setClientIdPrefix(kafka.groupId())
                .setBootstrapServers(kafka.bootstrapServers())
                .setGroupId(kafka.groupId())
                .setTopics(Arrays.stream(Topic.values()).map(topic -> topic.kafkaName).toList())
                .setStartingOffsets(OffsetsInitializer.committedOffsets(fromEarliest ? OffsetResetStrategy.EARLIEST : OffsetResetStrategy.LATEST))
                .setDeserializer(new RawBatchDeserializer())
                .build();
    }
}
