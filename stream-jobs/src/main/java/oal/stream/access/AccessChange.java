package oal.stream.access;

/** An access point is revoked, or is not any more. */
public class AccessChange {
    /** {@link #revokedAtUs} of one that is not. */
    public static final long NEVER = Long.MAX_VALUE;

    public String apId;
    /** Batches that the broker took from this moment on are refused, µs since 1970. */
    public long revokedAtUs;
    /** Where the topic says so. */
    public int partition;
    public long offset;

    /** For Flink's serializer. */
    public AccessChange() {}

    public AccessChange(String apId, long revokedAtUs, int partition, long offset) {
        this.apId = apId;
        this.revokedAtUs = revokedAtUs;
        this.partition = partition;
        this.offset = offset;
    }

    @Override
    public String toString() {
        return "AccessChange{" + apId + (revokedAtUs == NEVER ? ", not revoked" : ", revoked at " + revokedAtUs)
                + ", partition " + partition + ", offset " + offset + "}";
    }
}
