package oal.stream.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Map;
import org.junit.jupiter.api.Test;

class KafkaClientTest {
    private final KafkaClient client = new KafkaClient(Map.of("bootstrap.servers", "b:1", "group.id", "g",
            "transaction.timeout.ms", "60000", "security.protocol", "SSL"));

    @Test
    void consumersReadCommittedRecordsOnly() {
        assertEquals("read_committed", client.consumer().getProperty("isolation.level"));
        assertEquals("SSL", client.consumer().getProperty("security.protocol"));
        assertFalse(client.consumer().containsKey("transaction.timeout.ms"), "a producer's option");
    }

    @Test
    void producersTakeTheirOptions() {
        assertEquals("60000", client.producer().getProperty("transaction.timeout.ms"));
        assertFalse(client.producer().containsKey("group.id"), "a consumer's option");
    }

    @Test
    void needsServersAndGroup() {
        assertThrows(IllegalArgumentException.class, () -> new KafkaClient(Map.of("group.id", "g")));
        assertThrows(IllegalArgumentException.class, () -> new KafkaClient(Map.of("bootstrap.servers", "b:1")));
    }
}
