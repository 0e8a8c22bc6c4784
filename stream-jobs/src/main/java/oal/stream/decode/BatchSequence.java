package oal.stream.decode;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Which batches of one incarnation of an AP, in one topic, have come: everything before {@code next} except the holes.
 * Exact, so that a batch is used once and only once. At most {@link #MAX_HOLES} holes are kept; the oldest then count
 * as seen.
 */
final class BatchSequence {
    static final int MAX_HOLES = 256;

    /** Sequence numbers that never came, both included. */
    private record Hole(long from, long to) {}

    private final long bootId;
    private long next;
    private final List<Hole> holes = new ArrayList<>();

    /** Nothing came yet; {@code next} is expected. */
    BatchSequence(long bootId, long next) {
        this.bootId = bootId;
        this.next = next;
    }

    long bootId() {
        return bootId;
    }

    long next() {
        return next;
    }

    /**
     * Take note of a batch: null if it is the one expected, MISSING if some are missing before it, DUPLICATE or
     * REORDERED if it is older.
     */
    GapKind note(long seq) {
        if (seq == next) {
            next = seq + 1;
            return null;
        }
        if (seq > next) {
            if (holes.size() == MAX_HOLES) holes.remove(0);
            holes.add(new Hole(next, seq - 1));
            next = seq + 1;
            return GapKind.MISSING;
        }
        for (int i = holes.size() - 1; i >= 0; i--) {
            Hole h = holes.get(i);
            if (seq > h.to) return GapKind.DUPLICATE;
            if (seq < h.from) continue;
            holes.remove(i);
            if (seq < h.to) holes.add(i, new Hole(seq + 1, h.to));
            if (seq > h.from) holes.add(i, new Hole(h.from, seq - 1));
            while (holes.size() > MAX_HOLES) holes.remove(0);
            return GapKind.REORDERED;
        }
        return GapKind.DUPLICATE;
    }

    void write(DataOutput out) throws IOException {
        out.writeLong(bootId);
        out.writeLong(next);
        out.writeInt(holes.size());
        for (Hole h : holes) {
            out.writeLong(h.from);
            out.writeLong(h.to);
        }
    }

    static BatchSequence read(DataInput in) throws IOException {
        BatchSequence s = new BatchSequence(in.readLong(), in.readLong());
        int n = in.readInt();
        for (int i = 0; i < n; i++) s.holes.add(new Hole(in.readLong(), in.readLong()));
        return s;
    }
}
