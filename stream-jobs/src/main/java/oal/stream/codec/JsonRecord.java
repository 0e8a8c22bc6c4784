package oal.stream.codec;

/** One record of a topic of JSON ({@code platform.events.v1}, {@code ap.access.v1}), undecoded. */
public class JsonRecord {
    /** Empty when the record had none. */
    public String key;
    /** Null when the record had none. */
    public byte[] value;
    /** Time at which the broker received the record, ms since 1970. */
    public long kafkaTsMs;
    public int partition;
    public long offset;

    /** For Flink's serializer. */
    public JsonRecord() {}

    public JsonRecord(String key, byte[] value, long kafkaTsMs, int partition, long offset) {
        this.key = key == null ? "" : key;
        this.value = value;
        this.kafkaTsMs = kafkaTsMs;
        this.partition = partition;
        this.offset = offset;
    }

    @Override
    public String toString() {
        return "JsonRecord{" + key + ", " + (value == null ? "no value" : value.length + " bytes") + ", partition "
                + partition + ", offset " + offset + "}";
    }
}
