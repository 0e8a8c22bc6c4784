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
    /** Segments that were dropped in the window: by a queue, or by something unknown where no queue is counted; by the
     * air; and those that nothing here dropped, as far as its counters say. */
    public long congestionLostPkts;
    public long airLostPkts;
    public long elsewhereLostPkts;
    public int flows;
    /** Does it begin after the last restart? */
    public boolean whole;
    /** Whole, and no batch or tick of it is missing. */
    public boolean complete;

    void clear(long startUs) {
        this.startUs = startUs;
        offeredPkts = offeredBytes = lostPkts = lostBytes = macLostPkts = queueDropPkts = 0;
        congestionLostPkts = airLostPkts = elsewhereLostPkts = 0;
        flows = 0;
        whole = complete = false;
    }

    /** Congestion losses by the earlier definition: seen again in the window, less what the MAC gave up in it. */
    public long congestionResentPkts() {
        return Math.max(0, lostPkts - macLostPkts);
    }

    /** Losses are no part of what was offered in the same window, so more may be lost than offered: then 1. */
    public float lossRatio() {
        if (congestionLostPkts == 0) return 0;
        return congestionLostPkts >= offeredPkts ? 1 : (float) congestionLostPkts / offeredPkts;
    }

    /** The ratio by the earlier definition, rounded down: class bounds are permille, so it says that class too. */
    public int lossPermilleResent() {
        return offeredPkts == 0 ? 0 : (int) (congestionResentPkts() * 1000 / offeredPkts);
    }

    /**
     * Index into {@code Settings.CLASS_NAMES}: how many bounds the loss ratio reaches. Integers, so that bounds are
     * exact.
     */
    public int lossClass() {
        if (congestionLostPkts == 0) return 0;
        int c = 0;
        for (int bound : BOUNDS_PERMILLE) if (congestionLostPkts * 1000 >= bound * offeredPkts) c++;
        return c;
    }
}
