package oal.stream.pipeline;

import java.util.TreeMap;

/**
 * Bytes that were read since the last complete checkpoint, of one reader. All that is made of them, rows above all,
 * waits in the memory of the sinks until a checkpoint is complete and its inserts are done; so the bound on this bounds
 * that. A sink cannot bound it: while it blocks, the barrier behind the data does not come, and nothing is ever
 * released. A reader that reads no further still sends barriers.
 */
final class UncommittedBytes {
    private final long max;
    private long read;
    private long committed;
    /** By checkpoint that is under way: what had been read before it. */
    private final TreeMap<Long, Long> readBefore = new TreeMap<>();

    UncommittedBytes(long max) {
        if (max <= 0) throw new IllegalArgumentException("sink.held.max.bytes must be positive");
        this.max = max;
    }

    void read(int bytes) {
        read += bytes;
    }

    boolean full() {
        return held() >= max;
    }

    long held() {
        return read - committed;
    }

    void snapshot(long checkpoint) {
        readBefore.put(checkpoint, read);
    }

    /** All before it is complete with it. */
    void complete(long checkpoint) {
        var last = readBefore.floorEntry(checkpoint);
        if (last == null) return;
        committed = Math.max(committed, last.getValue());
        readBefore.headMap(checkpoint, true).clear();
    }

    /** Nothing of it is released; a later checkpoint takes what it held. */
    void aborted(long checkpoint) {
        readBefore.remove(checkpoint);
    }
}
