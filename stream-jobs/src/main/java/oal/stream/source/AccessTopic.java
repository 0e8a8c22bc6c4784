package oal.stream.source;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import oal.stream.access.AccessDecoder;
import oal.stream.access.AccessHistory;
import oal.stream.access.Revocations;
import oal.stream.codec.InputTopics;
import oal.stream.codec.RefusedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads {@code ap.access.v1} from its beginning to its present end. It skips a record that cannot be read; the stream
 * refuses that record.
 */
public record AccessTopic(KafkaClient kafka) implements AccessHistory {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(AccessTopic.class);
    private static final Duration POLL = Duration.ofSeconds(1);

    @Override
    public Revocations read() throws Exception {
        Properties properties = kafka.consumer();
        // This reader is not part of the group.
        properties.remove("group.id");
        properties.setProperty("enable.auto.commit", "false");
        properties.setProperty("allow.auto.create.topics", "false");
        while (true) {
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(),
                    new ByteArrayDeserializer())) {
                return read(consumer);
            } catch (RetriableException e) {
                LOG.warn("cannot read {} yet ({}); batches wait until it can be read", InputTopics.ACCESS,
	e.toString());
            }
        }
    }

    private static Revocations read(KafkaConsumer<byte[], byte[]> consumer) {
        List<PartitionInfo> found = consumer.partitionsFor(InputTopics.ACCESS);
        if (found == null || found.isEmpty()) {
            throw new IllegalStateException("Kafka has no topic " + InputTopics.ACCESS + ": make the topics first");
        }
        List<TopicPartition> partitions = found.stream().map(p -> new TopicPartition(p.topic(), p.partition()))
                .toList();
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        Revocations revocations = new Revocations();
        while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                try {
                    revocations.apply(AccessDecoder.decode(JsonRecordDeserializer.record(record)));
                } catch (RefusedException e) {
                    continue; // the operator of the stream counts it and makes a dead letter
                }
            }
        }
        for (TopicPartition p : partitions) revocations.readTo(p.partition(), consumer.position(p));
        return revocations;
    }
}
