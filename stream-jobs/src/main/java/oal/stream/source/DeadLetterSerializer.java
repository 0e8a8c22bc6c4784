package oal.stream.source;

import java.nio.charset.StandardCharsets;
import oal.stream.access.BatchMac;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.OutputTopics;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Headers;

/**
 * A refused record as it came, with headers that say where it came from and why it was refused. Copying it back to its
 * topic replays it.
 */
final class DeadLetterSerializer extends TopicSerializer<DeadLetter> {
    private static final long serialVersionUID = 1;

    DeadLetterSerializer() {
        super(OutputTopics.DEAD_LETTERS);
    }

    @Override
    public ProducerRecord<byte[], byte[]> serialize(DeadLetter letter, KafkaSinkContext context, Long timestamp) {
        byte[] key = letter.key.isEmpty() ? null : text(letter.key);
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, null, null, key,
                letter.value);
        Headers headers = record.headers();
        headers.add("reason", text(letter.reason));
        headers.add("detail", text(letter.detail));
        headers.add("topic", text(letter.topic));
        headers.add("partition", text(Integer.toString(letter.partition)));
        headers.add("offset", text(Long.toString(letter.offset)));
        headers.add("timestamp_ms", text(Long.toString(letter.kafkaTsMs)));
        if (letter.mac.length > 0) headers.add(BatchMac.HEADER, letter.mac);
        return record;
    }

    private static byte[] text(String value) {
        return value.getBytes(StandardCharsets.UTF_8);
    }
}
