package oal.stream.codec;

/** A record that was refused, as it came, with the reason: for {@code dead.letters.v1}. */
public class DeadLetter {
    public String key;
    /** Kafka name of the topic it came from. */
    public String topic;
    public byte[] value;
    /** Header {@code oal-mac} that it came with, so that it can be sent again; empty: none. */
    public byte[] mac;
    /** {@link Refusal#label()}. */
    public String reason;
    /** What exactly was wrong. */
    public String detail;
    /** Time the broker took the record, ms since 1970. */
    public long kafkaTsMs;
    public int partition;
    public long offset;

    /** For Flink's serializer. */
    public DeadLetter() {}

    public DeadLetter(RawBatch batch, RefusedException why) {
        this(batch.topic().kafkaName, batch.key, batch.value, batch.kafkaTsMs, batch.partition, batch.offset, why);
        mac = batch.mac;
    }

    /** @param topic Kafka name of the topic it came from */
    public DeadLetter(String topic, String key, byte[] value, long kafkaTsMs, int partition, long offset, RefusedException why) {
        this.topic = topic;
        this.key = key;
        this.value = value;
        mac = new byte[0];
        reason = why.reason.label();
        detail = why.getMessage();
        this.kafkaTsMs = kafkaTsMs;
        this.partition = partition;
        this.offset = offset;
    }
}
