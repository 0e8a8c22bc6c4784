package oal.stream.access;

import java.util.HashMap;
import java.util.Map;

/**
 * Which access points are revoked. This is not in checkpoints: the compacted topic keeps it, and is read to its end
 * before the first batch ({@link AccessHistory}); then the stream of changes continues.
 */
public final class Revocations {
    private final Map<String, Long> sinceUs = new HashMap<>();
    /** Per partition the offset before which every record is in. */
    private final Map<Integer, Long> readTo = new HashMap<>();

    /** All records of the partition before this offset were applied; when they come again they change nothing. */
    public void readTo(int partition, long offset) {
        readTo.put(partition, offset);
    }

    /** @param change in the order of its partition */
    public void apply(AccessChange change) {
        if (change.offset < readTo.getOrDefault(change.partition, 0L)) return;
        readTo.put(change.partition, change.offset + 1);
        if (change.revokedAtUs == AccessChange.NEVER) sinceUs.remove(change.apId);
        else sinceUs.put(change.apId, change.revokedAtUs);
    }

    /**
     * Broker's time, µs, from which batches of an access point are refused; {@link AccessChange#NEVER}: it is not
     * revoked.
     */
    public long sinceUs(String apId) {
        return sinceUs.getOrDefault(apId, AccessChange.NEVER);
    }

    public int size() {
        return sinceUs.size();
    }
}
