package oal.stream.access;

/** One record of {@code ap.access.v1}, undecoded. */
public class AccessRecord {
    /** Empty when the record had none. */
    public String key;
    /** Null: the access point is not revoked any more. */
    public byte[] value;
    /** Time the broker took the record, ms since 1970. */
    public long kafkaTsMs;
    public int partition;
    public long offset;

    /** For Flink's serializer. */
    public AccessRecord() {}

    public AccessRecord(String key, byte[] value, long kafkaTsMs, int partition, long offset) {
        this.key = key == null ? "" : key;
        this.value = value;
        this.kafkaTsMs = kafkaTsMs;
        this.partition = partition;
        this.offset = offset;
    }

    @Override
    public String toString() {
        return "AccessRecord{" + key + ", " + (value == null ? "no value" : value.length + " bytes") + ", partition " + partition + ", offset " + offset + "}";
    }
}
