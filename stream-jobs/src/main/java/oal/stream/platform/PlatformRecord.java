package oal.stream.platform;

/** One record of {@code platform.events.v1}, undecoded. */
public class PlatformRecord {
    /** Empty when the record had none. */
    public String key;
    /** Never null; empty for a record without a value. */
    public byte[] value;
    /** Time the broker took the record, ms since 1970. */
    public long kafkaTsMs;
    public int partition;
    public long offset;

    /** For Flink's serializer. */
    public PlatformRecord() {}

    public PlatformRecord(String key, byte[] value, long kafkaTsMs, int partition, long offset) {
        this.key = key == null ? "" : key;
        this.value = value == null ? new byte[0] : value;
        this.kafkaTsMs = kafkaTsMs;
        this.partition = partition;
        this.offset = offset;
    }

    @Override
    public String toString() {
        return "PlatformRecord{" + key + ", " + value.length + " bytes, partition " + partition + ", offset " + offset + "}";
    }
}
