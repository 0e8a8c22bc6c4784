package oal.stream.item;

/** Features at a decision instant with what came true after it. */
public final class Item {
    public static final long NONE = -1;

    public long tsUs;
    public long bootId;
    public long[] features;
    public int classNow;
    public int classThen;
    public float lossRatio;
    public long offeredPkts;
    /** Loss by the earlier definition, of the window that came true and of the one before the instant, ‰. */
    public int permilleResent;
    public int permilleNowResent;
    /** From the last congestion drop in the window before the instant, and to the first one up to the end of the window
     * that came true, µs; {@link #NONE}: there is none. */
    public long sinceDropUs;
    public long untilDropUs;
    /** No gap in the features, in the window before the instant, nor in the window that came true. */
    public boolean complete;
    /**
     * The features remember a time of which batches did not come: they may differ from those of the access point. Then
     * the item is not complete.
     */
    public boolean lackedInput;
    /**
     * A policy acted on the access point's traffic in the windows before or after the instant, or may have. Then the
     * item is not complete.
     */
    public boolean underControl;

    /** Says whether a policy acted, or may have. */
    public void control(boolean acted) {
        underControl = acted;
        complete &= !acted;
    }
}
