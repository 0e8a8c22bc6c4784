package oal.stream.process;

import java.util.ArrayList;
import java.util.List;
import oal.schema.Topic;
import oal.stream.decode.AcceptedBatch;
import oal.stream.item.Item;
import oal.stream.item.ItemJson;
import oal.stream.label.Loss;
import oal.stream.label.LossJson;
import oal.stream.policy.Policy;

/** Makes training items, or rows of losses, from recorded batches, as the job does. */
public final class BatchReplay {
    private final BatchFeed feed = new BatchFeed(new Lines());
    private final ItemJson json = new ItemJson();
    private final boolean wantsLosses;
    private final long[] causes = new long[4];
    private List<byte[]> made = new ArrayList<>();
    private long late;
    private long items;
    private long complete;

    /** @param losses whether it gives losses instead of items */
    public BatchReplay(boolean losses) {
        wantsLosses = losses;
    }

    public void add(Topic topic, byte[] data) {
        feed.add(topic, data);
    }

    /** No more batches come: process those that wait. */
    public void end() {
        feed.end();
    }

    /** Items, or losses, made since the last call, JSON in UTF-8. */
    public List<byte[]> drain() {
        List<byte[]> drained = made;
        made = new ArrayList<>();
        return drained;
    }

    @Override
    public String toString() {
        return feed.batches + " batches of " + feed.aps.size() + " APs, " + items + " items (" + complete + " complete)"
                + ", segments lost: "
                + causes[Loss.QUEUE] + " queue, " + causes[Loss.AIR] + " air, " + causes[Loss.BOTH] + " both, "
                + causes[Loss.UNKNOWN] + " unknown"
                + (feed.refused > 0 ? ", " + feed.refused + " batches refused" : "") + (late > 0 ? ", " + late + " late"
                        : "");
    }

    private final class Lines implements ApOutput {
        @Override
        public void item(ApState ap, String apId, Policy policy, Item item) {
            items++;
            if (item.complete) complete++;
            if (!wantsLosses) made.add(json.of(apId, ap.site, policy.name, policy.featureHash, item).json);
        }

        @Override
        public void loss(ApState ap, String apId, Loss loss) {
            causes[loss.cause] += loss.pkts;
            if (wantsLosses) made.add(LossJson.of(apId, loss));
        }

        @Override
        public void late(AcceptedBatch batch, long lateUs) {
            late++;
        }
    }
}
