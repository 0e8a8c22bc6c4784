package oal.stream.source;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import oal.schema.Topic;
import oal.stream.codec.InputTopics;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RawBatch;
import oal.stream.pipeline.AlignedSource;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;

/**
 * Sources out of Kafka.
 *
 * @param fromEarliest where to begin in a partition for which neither a checkpoint nor the consumer group has an offset
 * @param discovery how often to look for new partitions
 */
public record TopicSource(KafkaClient kafka, boolean fromEarliest, Duration discovery) {
    /**
     * All that access points write, as one source: one watermark over samples, packets and events, so that none runs
     * ahead.
     *
     * @param behind a partition counts as read up to no less than this long ago
     * @param maxBytes of batches that a reader reads before a checkpoint is complete
     */
    public Source<RawBatch, ?, ?> batches(Duration behind, long maxBytes) {
        KafkaSource<RawBatch> topics = of(Arrays.stream(Topic.values()).map(topic -> topic.kafkaName).toList(),
                kafka.groupId(), new RawBatchDeserializer());
        return new AlignedSource<>(topics, ends(kafka, fromEarliest), behind, maxBytes);
    }

    private static AlignedSource.EndsFactory<KafkaPartitionSplit> ends(KafkaClient kafka, boolean fromEarliest) {
        return () -> new KafkaEnds(kafka, fromEarliest);
    }

    /** What the platform's services write. */
    public KafkaSource<JsonRecord> platformEvents() {
        return of(List.of(InputTopics.PLATFORM_EVENTS), kafka.groupId() + "-platform", new JsonRecordDeserializer());
    }

    /** Which access points are revoked. {@link #fromEarliest} does not matter: all of a compacted topic counts. */
    public KafkaSource<JsonRecord> access() {
        return of(List.of(InputTopics.ACCESS), kafka.groupId() + "-access", new JsonRecordDeserializer(),
                OffsetResetStrategy.EARLIEST);
    }

    private <T> KafkaSource<T> of(List<String> topics, String clientIdPrefix,
            KafkaRecordDeserializationSchema<T> deserializer) {
        return of(topics, clientIdPrefix, deserializer, fromEarliest ? OffsetResetStrategy.EARLIEST
                : OffsetResetStrategy.LATEST);
    }

    private <T> KafkaSource<T> of(List<String> topics, String clientIdPrefix,
            KafkaRecordDeserializationSchema<T> deserializer, OffsetResetStrategy start) {
        return KafkaSource.<T>builder()
                .setProperties(kafka.consumer())
                .setProperty("partition.discovery.interval.ms", Long.toString(discovery.toMillis()))
                // Offsets are in the checkpoint; the group's are for those who watch the lag, and for a start without a
                // checkpoint.
                .setProperty("commit.offsets.on.checkpoint", "true")
                .setClientIdPrefix(clientIdPrefix)
                .setBootstrapServers(kafka.bootstrapServers())
                .setGroupId(kafka.groupId())
                .setTopics(topics)
                .setStartingOffsets(OffsetsInitializer.committedOffsets(start))
                .setDeserializer(deserializer)
                .build();
    }
}
