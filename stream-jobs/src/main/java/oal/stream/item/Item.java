package oal.stream.item;

/** Features at a decision instant with what came true after it. */
public final class Item {
    public long tsUs;
    public long bootId;
    public long[] features;
    public int classNow;
    public int classThen;
    public float lossRatio;
    public long offeredPkts;
    /** No gap in the features, in the window before the instant, nor in the window that came true. */
    public boolean complete;
    /**
     * The features remember a time of which batches did not come: they may differ from those of the access point. Then
     * the item is not complete.
     */
    public boolean lackedInput;
}
