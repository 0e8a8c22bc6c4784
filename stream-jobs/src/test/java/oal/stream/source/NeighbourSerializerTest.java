package oal.stream.source;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import oal.stream.neighbour.NeighbourRecord;
import org.junit.jupiter.api.Test;

class NeighbourSerializerTest {
    private final NeighbourRecord record = new NeighbourRecord();

    @Test
    void aRecordIsKeyedByItsChannel() {
        record.channel = "hall/5180";
        record.json = "{}".getBytes(StandardCharsets.UTF_8);
        var sent = new NeighbourSerializer().serialize(record, null, 1L);
        assertEquals("ap.neighbours.v1", sent.topic());
        assertEquals("hall/5180", new String(sent.key(), StandardCharsets.UTF_8));
        assertArrayEquals(record.json, sent.value());
        assertNull(sent.partition(), "by the key");
    }

    @Test
    void noValueWithdrawsIt() {
        record.channel = "hall/5180";
        assertNull(new NeighbourSerializer().serialize(record, null, 1L).value());
    }
}
