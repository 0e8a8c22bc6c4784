package oal.stream.source;

import java.io.Serializable;
import java.util.Map;
import java.util.Properties;

/**
 * How to reach Kafka: client options as Kafka names them (bootstrap.servers, security.protocol, ssl.keystore.location,
 * …). Options that only producers or only consumers know are left out for the others.
 */
public record KafkaClient(Map<String, String> options) implements Serializable {
    public KafkaClient {
        options = Map.copyOf(options);
        if (!options.containsKey("bootstrap.servers")) {
            throw new IllegalArgumentException("kafka.bootstrap.servers is missing");
        }
        if (!options.containsKey("group.id")) throw new IllegalArgumentException("kafka.group.id is missing");
    }

    String bootstrapServers() {
        return options.get("bootstrap.servers");
    }

    String groupId() {
        return options.get("group.id");
    }

    Properties consumer() {
        Properties properties = new Properties();
        // Batches are up to 1 MB; a fetch that holds some of each partition keeps partitions in step while catching up.
        properties.setProperty("max.partition.fetch.bytes", "2097152");
        properties.setProperty("fetch.max.bytes", "33554432");
        // What was polled is read, even of a partition that is to be read no further: a few seconds of an AP's batches.
        properties.setProperty("max.poll.records", "50");
        properties.setProperty("source.reader.element.queue.capacity", "1");
        properties.setProperty("isolation.level", "read_committed");
        options.forEach((name, value) -> {
            if (!"transaction.timeout.ms".equals(name)) properties.setProperty(name, value);
        });
        return properties;
    }

    Properties admin() {
        Properties properties = new Properties();
        options.forEach((name, value) -> {
            if (!"group.id".equals(name) && !"transaction.timeout.ms".equals(name)) properties.setProperty(name, value);
        });
        return properties;
    }

    Properties producer() {
        Properties properties = new Properties();
        properties.setProperty("compression.type", "lz4");
        properties.setProperty("linger.ms", "20");
        properties.setProperty("batch.size", "131072");
        // The broker's default upper limit. A transaction stays open during a checkpoint and whatever delays it.
        properties.setProperty("transaction.timeout.ms", "900000");
        options.forEach((name, value) -> {
            if (!"group.id".equals(name)) properties.setProperty(name, value);
        });
        return properties;
    }
}
