package oal.stream.codec;

import oal.schema.Topic;

/** One Kafka record of an access point, undecoded: it stays bytes through {@code keyBy}. */
public class RawBatch {
    /** The record's key, which must be the access point's id; empty when the record had none. */
    public String key;
    /** Ordinal of {@link Topic}. */
    public int topic;
    /** Never null; empty for a record without a value. */
    public byte[] value;
    /** Header {@code oal-mac}: one byte key_id and the MAC; empty when the record has none of that size. */
    public byte[] mac;
    /** Time at which the broker received the record, ms since 1970. */
    public long kafkaTsMs;
    public int partition;
    public long offset;

    /** For Flink's serializer. */
    public RawBatch() {}

    /** A batch without a MAC. */
    public RawBatch(String key, Topic topic, byte[] value, long kafkaTsMs, int partition, long offset) {
        this(key, topic, value, null, kafkaTsMs, partition, offset);
    }

    public RawBatch(String key, Topic topic, byte[] value, byte[] mac, long kafkaTsMs, int partition, long offset) {
        this.key = key == null ? "" : key;
        this.topic = topic.ordinal();
        this.value = value == null ? new byte[0] : value;
        this.mac = mac == null ? new byte[0] : mac;
        this.kafkaTsMs = kafkaTsMs;
        this.partition = partition;
        this.offset = offset;
    }

    public Topic topic() {
        return TopicNames.ALL[topic];
    }

    @Override
    public String toString() {
        return "RawBatch{" + key + ", " + topic() + ", " + value.length + " bytes, partition " + partition + ", offset "
                + offset + "}";
    }
}
