package oal.stream.source;

import java.nio.charset.StandardCharsets;
import oal.stream.access.BatchMac;
import oal.stream.codec.RawBatch;
import oal.stream.codec.TopicNames;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;

/** A record as it is. Nothing here can fail, so a record that cannot be read becomes a dead letter in the decoder. */
final class RawBatchDeserializer implements KafkaRecordDeserializationSchema<RawBatch> {
    private static final long serialVersionUID = 1;

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<RawBatch> out) {
        String key = record.key() == null ? null : new String(record.key(), StandardCharsets.UTF_8);
        out.collect(new RawBatch(key, TopicNames.of(record.topic()), record.value(), mac(record), record.timestamp(),
                record.partition(), record.offset()));
    }

    /** A header of another size counts as none, so that no record carries a large one. */
    private static byte[] mac(ConsumerRecord<byte[], byte[]> record) {
        Header header = record.headers().lastHeader(BatchMac.HEADER);
        return header == null || header.value() == null || header.value().length != BatchMac.HEADER_BYTES ? null
                : header.value();
    }

    @Override
    public TypeInformation<RawBatch> getProducedType() {
        return TypeInformation.of(RawBatch.class);
    }
}
