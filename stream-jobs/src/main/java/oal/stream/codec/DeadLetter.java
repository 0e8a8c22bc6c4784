package oal.stream.codec;

/** A record that was refused, as it came, with the reason: for {@code dead.letters.v1}. */
public class DeadLetter {
    public String key;
    /** Kafka name of the topic it came from. */
    public String topic;
    public byte[] value;
    /** Its header {@code oal-mac}, so that the record can be sent again; empty: none. */
    public byte[] mac;
    /** {@link Refusal#label()}. */
    public String reason;
    /** What exactly was wrong. */
    public String detail;
    /** Time at which the broker received the record, ms since 1970. */
    public long kafkaTsMs;
    public int partition;
    public long offset;

    /** For Flink's serializer. */
    public DeadLetter() {}

    public DeadLetter(RawBatch batch, RefusedException why) {
        this(batch.topic().kafkaName, batch.key, batch.value, batch.mac, batch.kafkaTsMs, batch.partition, batch.offset,
                why);
    }

    /** @param topic Kafka name of the topic it came from */
    public DeadLetter(String topic, JsonRecord record, RefusedException why) {
        this(topic, record.key, record.value == null ? new byte[0] : record.value, new byte[0], record.kafkaTsMs,
                record.partition, record.offset, why);
    }

    private DeadLetter(String topic, String key, byte[] value, byte[] mac, long kafkaTsMs, int partition, long offset,
            RefusedException why) {
        this.topic = topic;
        this.key = key;
        this.value = value;
        this.mac = mac;
        reason = why.reason.label();
        detail = why.getMessage();
        this.kafkaTsMs = kafkaTsMs;
        this.partition = partition;
        this.offset = offset;
    }
}
