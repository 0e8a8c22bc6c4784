package oal.stream.item;

/**
 * One training item of an access point, for {@code training.items.v1}: key = ap_id, value = JSON (see
 * {@link ItemJson}).
 */
public class TrainingItem {
    public String apId;
    /** UTF-8. */
    public byte[] json;

    /** For Flink's serializer. */
    public TrainingItem() {}

    public TrainingItem(String apId, byte[] json) {
        this.apId = apId;
        this.json = json;
    }
}
