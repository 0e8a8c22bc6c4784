package oal.stream.decode;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.schema.Topic;

/**
 * Batches that have come from one access point, per topic: of the present incarnation and of the one before, whose last
 * batches may come late.
 */
final class Arrivals {
    /** Receives each irregularity; sequence numbers are inclusive. */
    interface Listener {
        void gap(GapKind kind, long fromSeq, long toSeq);
    }

    private static final int TOPICS = Topic.values().length;

    private final BatchSequence[] now = new BatchSequence[TOPICS];
    private final BatchSequence[] before = new BatchSequence[TOPICS];
    /** Broker's time of the latest batch, ms. */
    long lastMs = Long.MIN_VALUE;
    /** When the timer that ends this state was set for, ms. */
    long timerMs = Long.MIN_VALUE;

    /** Take note of a batch. False: it is a duplicate, to be dropped. */
    boolean note(int topic, long bootId, long seq, Listener listener) {
        BatchSequence sequence = now[topic];
        if (sequence == null) {
            // the first batch that this job sees says nothing about earlier ones
            now[topic] = sequence = new BatchSequence(bootId, seq);
        } else if (sequence.bootId() != bootId) {
            if (before[topic] != null && before[topic].bootId() == bootId) {
                sequence = before[topic];
            } else {
                listener.gap(GapKind.REBOOT, seq, seq);
                before[topic] = sequence;
                now[topic] = sequence = new BatchSequence(bootId, 0);
            }
        }
        long expected = sequence.next();
        GapKind kind = sequence.note(seq);
        if (kind == null) return true;
        if (kind == GapKind.MISSING) listener.gap(kind, expected, seq - 1);
        else listener.gap(kind, seq, seq);
        return kind != GapKind.DUPLICATE;
    }

    void write(DataOutput out) throws IOException {
        out.writeLong(lastMs);
        out.writeLong(timerMs);
        for (int t = 0; t < TOPICS; t++) {
            write(out, now[t]);
            write(out, before[t]);
        }
    }

    private static void write(DataOutput out, BatchSequence s) throws IOException {
        out.writeBoolean(s != null);
        if (s != null) s.write(out);
    }

    static Arrivals read(DataInput in) throws IOException {
        Arrivals a = new Arrivals();
        a.lastMs = in.readLong();
        a.timerMs = in.readLong();
        for (int t = 0; t < TOPICS; t++) {
            a.now[t] = in.readBoolean() ? BatchSequence.read(in) : null;
            a.before[t] = in.readBoolean() ? BatchSequence.read(in) : null;
        }
        return a;
    }
}
