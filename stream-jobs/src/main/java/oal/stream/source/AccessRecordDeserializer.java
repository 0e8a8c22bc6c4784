package oal.stream.source;

import java.nio.charset.StandardCharsets;
import oal.stream.access.AccessRecord;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** A record as it is: nothing here can fail, so that a record that cannot be read becomes a dead letter. */
final class AccessRecordDeserializer implements KafkaRecordDeserializationSchema<AccessRecord> {
    private static final long serialVersionUID = 1;

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<AccessRecord> out) {
        out.collect(record(record));
    }

    static AccessRecord record(ConsumerRecord<byte[], byte[]> record) {
        String key = record.key() == null ? null : new String(record.key(), StandardCharsets.UTF_8);
        return new AccessRecord(key, record.value(), record.timestamp(), record.partition(), record.offset());
    }

    @Override
    public TypeInformation<AccessRecord> getProducedType() {
        return TypeInformation.of(AccessRecord.class);
    }
}
