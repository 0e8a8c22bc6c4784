package oal.stream.codec;

/** A record that was refused, as it came, with the reason: for {@code dead.letters.v1}. */
public class DeadLetter {
    public String key;
    /** Kafka name of the topic it came from. */
    public String topic;
    public byte[] value;
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
        key = batch.key;
        topic = batch.topic().kafkaName;
        value = batch.value;
        reason = why.reason.label();
        detail = why.getMessage();
        kafkaTsMs = batch.kafkaTsMs;
        partition = batch.partition;
        offset = batch.offset;
    }
}
