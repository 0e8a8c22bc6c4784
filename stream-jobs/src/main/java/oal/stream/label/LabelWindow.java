package oal.stream.label;

import oal.schema.Settings;

/** What was offered and lost in one label window [start, start + window). */
public final class LabelWindow {
    private static final int[] BOUNDS_PERMILLE = Settings.classBoundsPermille();

    public long startUs;
    public long offeredPkts;
    public long offeredBytes;
    public long lostPkts;
    public long lostBytes;
    public long macLostPkts;
    public long queueDropPkts;
    public int flows;
    /** Does it begin after the last restart? */
    public boolean whole;
    /** Whole, and no batch or tick of it is missing. */
    public boolean complete;

    void clear(long startUs) {
        this.startUs = startUs;
        offeredPkts = offeredBytes = lostPkts = lostBytes = macLostPkts = queueDropPkts = 0;
        flows = 0;
        whole = complete = false;
    }

    public long congestionLostPkts() {
        return Math.max(0, lostPkts - macLostPkts);
    }

    public float lossRatio() {
        return offeredPkts == 0 ? 0 : (float) congestionLostPkts() / offeredPkts;
    }

    /**
     * Index into {@code Settings.CLASS_NAMES}: how many bounds the loss ratio reaches. Integers, so that bounds are
     * exact.
     */
    public int lossClass() {
        if (offeredPkts == 0) return 0;
        int c = 0;
        for (int bound : BOUNDS_PERMILLE) if (congestionLostPkts() * 1000 >= bound * offeredPkts) c++;
        return c;
    }
}
