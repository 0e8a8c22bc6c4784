package oal.stream.item;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.schema.Settings;
import oal.stream.label.LabelWindow;

/**
 * Pairs the features at an instant t with the label window [t + horizon, t + horizon + window), which ends at the
 * instant t + horizon + window. Keeps the vectors in between.
 */
public final class ItemJoin {
    private static final long INTERVAL_US = Settings.DECISION_INTERVAL_US;
    /** Instants from the features to the end of the window that came true. */
    static final int DELAY = (int) ((Settings.HORIZON_US + Settings.LABEL_WINDOW_US) / INTERVAL_US);
    private static final int RING = DELAY + 1;

    /** In the state. */
    private static final int COMPLETE = 1;
    private static final int LACKED_INPUT = 2;

    private final long[] ts = new long[RING];
    private final long[][] features = new long[RING][];
    private final int[] classNow = new int[RING];
    private final boolean[] complete = new boolean[RING];
    private final boolean[] lackedInput = new boolean[RING];
    private final Item item = new Item();

    static {
        if (Settings.HORIZON_US % INTERVAL_US != 0 || Settings.LABEL_WINDOW_US % INTERVAL_US != 0) {
            throw new IllegalStateException("horizon and label window must be multiples of the decision interval");
        }
    }

    /** Forget what waits. */
    public void clear() {
        java.util.Arrays.fill(ts, 0);
    }

    /**
     * Take the features at {@code instant} and the label window that ends there.
     *
     * @param lacked whether they remember a time of which batches did not come
     * @return the item that the window completes, valid until the next call; null if there is none
     */
    public Item next(long instant, long bootId, long[] x, boolean featuresComplete, boolean lacked,
            LabelWindow ended) {
        int slot = slot(instant);
        if (features[slot] == null || features[slot].length != x.length) features[slot] = new long[x.length];
        System.arraycopy(x, 0, features[slot], 0, x.length);
        ts[slot] = instant;
        classNow[slot] = ended.lossClass();
        complete[slot] = featuresComplete && !lacked && ended.complete;
        lackedInput[slot] = lacked;

        long at = instant - DELAY * INTERVAL_US;
        int from = slot(at);
        if (ts[from] != at || !ended.whole) return null;
        item.tsUs = at;
        item.bootId = bootId;
        item.features = features[from];
        item.classNow = classNow[from];
        item.classThen = ended.lossClass();
        item.lossRatio = ended.lossRatio();
        item.offeredPkts = ended.offeredPkts;
        item.complete = complete[from] && ended.complete;
        item.lackedInput = lackedInput[from];
        return item;
    }

    private static int slot(long instant) {
        return (int) (instant / INTERVAL_US % RING);
    }

    public void write(DataOutput out) throws IOException {
        for (int i = 0; i < RING; i++) {
            out.writeLong(ts[i]);
            if (ts[i] == 0) continue;
            out.writeByte(classNow[i]);
            out.writeByte((complete[i] ? COMPLETE : 0) | (lackedInput[i] ? LACKED_INPUT : 0));
            out.writeInt(features[i].length);
            for (long v : features[i]) out.writeLong(v);
        }
    }

    public void read(DataInput in) throws IOException {
        for (int i = 0; i < RING; i++) {
            ts[i] = in.readLong();
            if (ts[i] == 0) continue;
            classNow[i] = in.readUnsignedByte();
            int marks = in.readUnsignedByte();
            complete[i] = (marks & COMPLETE) != 0;
            lackedInput[i] = (marks & LACKED_INPUT) != 0;
            features[i] = new long[in.readInt()];
            for (int k = 0; k < features[i].length; k++) features[i][k] = in.readLong();
        }
    }
}
