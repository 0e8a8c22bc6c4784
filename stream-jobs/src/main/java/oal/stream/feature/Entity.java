package oal.stream.feature;

import java.util.BitSet;

/** One entity and the cells of all features of its table. */
final class Entity {
    final EntityKey key;
    final long[] cells;
    /** Did it have a row in the latest batch of its topic? */
    boolean seen;
    /** Of a table of events: features that hold a value and had a row since the last hole. */
    final transient BitSet heard = new BitSet();
    /** Time of its latest row within one batch. */
    transient long lastUs;
    /** Values of the features that choose an entity, at the instant evaluated last. */
    final transient long[] kept;

    Entity(EntityKey key, int words, int choosers) {
        this.key = key;
        this.cells = new long[words];
        this.kept = new long[choosers];
    }
}
