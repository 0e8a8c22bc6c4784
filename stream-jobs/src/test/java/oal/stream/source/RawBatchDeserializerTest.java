package oal.stream.source;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import oal.schema.Topic;
import oal.stream.codec.RawBatch;
import org.apache.flink.api.common.functions.util.ListCollector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;

class RawBatchDeserializerTest {
    private static RawBatch read(byte[] key, byte[] value, Header... headers) {
        List<RawBatch> out = new ArrayList<>();
        new RawBatchDeserializer().deserialize(new ConsumerRecord<>("ap.packets.v1", 3, 99, 1234,
                TimestampType.LOG_APPEND_TIME, 0, 0, key, value,
                new RecordHeaders(headers), Optional.empty()), new ListCollector<>(out));
        assertEquals(1, out.size());
        return out.get(0);
    }

    @Test
    void takesARecordAsItIs() {
        RawBatch batch = read("ap-1".getBytes(), new byte[] {1, 2, 3});
        assertEquals("ap-1", batch.key);
        assertEquals(Topic.PACKETS, batch.topic());
        assertArrayEquals(new byte[] {1, 2, 3}, batch.value);
        assertEquals(1234, batch.kafkaTsMs);
        assertEquals(3, batch.partition);
        assertEquals(99, batch.offset);
        assertEquals(0, batch.mac.length);
    }

    @Test
    void keepsTheMacAndNothingElseThatIsCalledSo() {
        byte[] mac = new byte[17];
        mac[16] = 9;
        assertArrayEquals(mac, read(null, null, new RecordHeader("other", new byte[17]),
                new RecordHeader("oal-mac", mac)).mac);
        assertArrayEquals(mac, read(null, null, new RecordHeader("oal-mac", new byte[17]),
                new RecordHeader("oal-mac", mac)).mac, "the last one counts");
        for (byte[] bad : new byte[][] {null, {}, new byte[16], new byte[18], new byte[100_000]}) {
            assertEquals(0, read(null, null, new RecordHeader("oal-mac", bad)).mac.length);
        }
    }

    @Test
    void aRecordWithoutKeyOrValueOrWithABrokenKeyPassesToo() {
        RawBatch nothing = read(null, null);
        assertEquals("", nothing.key);
        assertEquals(0, nothing.value.length);
        assertEquals("\uFFFD", read(new byte[] {(byte) 0xFF}, new byte[0]).key);
    }
}
