package oal.stream.source;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import oal.schema.Topic;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.RawBatch;
import oal.stream.codec.Refusal;
import oal.stream.codec.RefusedException;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.Test;

class DeadLetterSerializerTest {
    private static ProducerRecord<byte[], byte[]> record(String key) {
        DeadLetter letter = new DeadLetter(new RawBatch(key, Topic.PACKETS, new byte[] {1, 2}, 7, 3, 99),
                new RefusedException(Refusal.TRUNCATED, "ends too soon"));
        return new DeadLetterSerializer().serialize(letter, null, null);
    }

    private static String header(ProducerRecord<byte[], byte[]> record, String name) {
        return new String(record.headers().lastHeader(name).value(), StandardCharsets.UTF_8);
    }

    @Test
    void keepsTheRecordAndSaysWhy() {
        ProducerRecord<byte[], byte[]> record = record("ap-1");
        assertEquals("dead.letters.v1", record.topic());
        assertEquals("ap-1", new String(record.key(), StandardCharsets.UTF_8));
        assertArrayEquals(new byte[] {1, 2}, record.value());
        assertNull(record.partition());
        assertEquals("truncated", header(record, "reason"));
        assertEquals("ends too soon", header(record, "detail"));
        assertEquals("ap.packets.v1", header(record, "topic"));
        assertEquals("3", header(record, "partition"));
        assertEquals("99", header(record, "offset"));
        assertEquals("7", header(record, "timestamp_ms"));
        assertNull(record.headers().lastHeader("oal-mac"));
    }

    @Test
    void itsMacGoesWithIt() {
        byte[] mac = new byte[17];
        mac[0] = 3;
        DeadLetter letter = new DeadLetter(new RawBatch("ap-1", Topic.PACKETS, new byte[] {1, 2}, mac, 7, 3, 99),
                new RefusedException(Refusal.REVOKED, "revoked"));
        assertArrayEquals(mac, new DeadLetterSerializer().serialize(letter, null, null).headers().lastHeader("oal-mac")
                .value());
    }

    @Test
    void aRecordWithoutAKeyStaysWithout() {
        assertNull(record(null).key());
    }
}
