package oal.stream.source;

import java.nio.charset.StandardCharsets;
import oal.stream.codec.JsonRecord;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** A record as it is. Nothing here can fail, so a record that cannot be read becomes a dead letter. */
final class JsonRecordDeserializer implements KafkaRecordDeserializationSchema<JsonRecord> {
    private static final long serialVersionUID = 1;

    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<JsonRecord> out) {
        out.collect(record(record));
    }

    static JsonRecord record(ConsumerRecord<byte[], byte[]> record) {
        String key = record.key() == null ? null : new String(record.key(), StandardCharsets.UTF_8);
        return new JsonRecord(key, record.value(), record.timestamp(), record.partition(), record.offset());
    }

    @Override
    public TypeInformation<JsonRecord> getProducedType() {
        return TypeInformation.of(JsonRecord.class);
    }
}
