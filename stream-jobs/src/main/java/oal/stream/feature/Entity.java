package oal.stream.feature;

/** One entity and the cells of all features of its table. */
final class Entity {
    final EntityKey key;
    final long[] cells;
    /** Did it have a row in the latest batch of its topic? */
    boolean seen;
    /** Time of its latest row within one batch. */
    transient long lastUs;

    Entity(EntityKey key, int words) {
        this.key = key;
        this.cells = new long[words];
    }
}
