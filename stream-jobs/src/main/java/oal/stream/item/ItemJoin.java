package oal.stream.item;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.schema.Settings;
import oal.stream.label.LabelWindow;
import oal.stream.label.Labeler;
import oal.stream.state.StateSettings;

/**
 * Pairs the features at an instant t with the label window [t + horizon, t + horizon + window). The label of a
 * window comes {@code loss_wait_us} after its end. Keeps the vectors in between.
 */
public final class ItemJoin {
    private static final long INTERVAL_US = Settings.DECISION_INTERVAL_US;

    /** In the state. */
    private static final int COMPLETE = 1;
    private static final int LACKED_INPUT = 2;

    private final StateSettings settings;
    /** Instants from the features to the end of the window that came true. */
    private final int delay;
    private final long[] ts;
    private final long[][] features;
    private final int[] classNow;
    private final int[] permilleNow;
    private final boolean[] complete;
    private final boolean[] lackedInput;
    private final Item item = new Item();

    public ItemJoin(StateSettings settings) {
        this.settings = settings;
        delay = settings.delay();
        ts = new long[delay + 1];
        features = new long[ts.length][];
        classNow = new int[ts.length];
        permilleNow = new int[ts.length];
        complete = new boolean[ts.length];
        lackedInput = new boolean[ts.length];
    }

    /** Forget what waits. */
    public void clear() {
        java.util.Arrays.fill(ts, 0);
    }

    /**
     * Take the features at {@code instant} and the label window of which the label is known since then: it ended
     * {@code loss_wait_us} before.
     *
     * @param lacked whether they remember a time of which batches did not come
     * @return the item that the window completes, valid until the next call; null if there is none
     */
    public Item next(long instant, long bootId, long[] x, boolean featuresComplete, boolean lacked,
            LabelWindow ended, Labeler labels) {
        int slot = slot(instant);
        if (features[slot] == null || features[slot].length != x.length) features[slot] = new long[x.length];
        System.arraycopy(x, 0, features[slot], 0, x.length);
        ts[slot] = instant;
        complete[slot] = featuresComplete && !lacked;
        lackedInput[slot] = lacked;
        long ends = instant - settings.lossWait() * INTERVAL_US;
        int now = slot(ends);
        if (ts[now] == ends) {
            classNow[now] = ended.lossClass();
            permilleNow[now] = ended.lossPermilleResent();
            complete[now] &= ended.complete;
        }

        long at = instant - delay * INTERVAL_US;
        int from = slot(at);
        if (ts[from] != at || !ended.whole) return null;
        item.tsUs = at;
        item.bootId = bootId;
        item.features = features[from];
        item.classNow = classNow[from];
        item.classThen = ended.lossClass();
        item.lossRatio = ended.lossRatio();
        item.offeredPkts = ended.offeredPkts;
        item.permilleResent = ended.lossPermilleResent();
        item.permilleNowResent = permilleNow[from];
        long last = labels.lastDropUs(at - settings.labelWindowUs(), at);
        item.sinceDropUs = last == 0 ? Item.NONE : at - last;
        long next = labels.firstDropUs(at, ends);
        item.untilDropUs = next == 0 ? Item.NONE : next - at;
        item.complete = complete[from] && ended.complete;
        item.lackedInput = lackedInput[from];
        return item;
    }

    private int slot(long instant) {
        return (int) (instant / INTERVAL_US % ts.length);
    }

    public void write(DataOutput out) throws IOException {
        for (int i = 0; i < ts.length; i++) {
            out.writeLong(ts[i]);
            if (ts[i] == 0) continue;
            out.writeByte(classNow[i]);
            out.writeShort(permilleNow[i]);
            out.writeByte((complete[i] ? COMPLETE : 0) | (lackedInput[i] ? LACKED_INPUT : 0));
            out.writeInt(features[i].length);
            for (long v : features[i]) out.writeLong(v);
        }
    }

    /**
     * Reads what {@link #write} wrote with the settings {@code was}. Under other settings a vector would meet another
     * window than the one that its class now is of, so what waited is dropped; its items are not made.
     */
    public void read(DataInput in, StateSettings was) throws IOException {
        if (!was.equals(settings)) {
            new ItemJoin(was).read(in, was);
            clear();
            return;
        }
        for (int i = 0; i < ts.length; i++) {
            ts[i] = in.readLong();
            if (ts[i] == 0) continue;
            if (ts[i] % INTERVAL_US != 0 || slot(ts[i]) != i) {
                throw new IOException("the state's vectors are not placed as with " + was + ": it is of a job with "
                        + "other settings (schema/settings.yaml), which it does not say");
            }
            classNow[i] = in.readUnsignedByte();
            if (was.stampsDrops()) permilleNow[i] = in.readUnsignedShort();
            int marks = in.readUnsignedByte();
            complete[i] = (marks & COMPLETE) != 0;
            lackedInput[i] = (marks & LACKED_INPUT) != 0;
            features[i] = new long[in.readInt()];
            for (int k = 0; k < features[i].length; k++) features[i][k] = in.readLong();
        }
    }
}
