package oal.stream.feature;

/** One entity and the cells of all features of its table. */
final class Entity {
    final EntityKey key;
    final long[] cells;
    /** Had it a row in the batch of its topic that came last? */
    boolean seen;
    /** Time of its row taken last, within one batch. */
    transient long lastUs;

    Entity(EntityKey key, int words) {
        this.key = key;
        this.cells = new long[words];
    }
}
