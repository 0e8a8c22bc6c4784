package oal.stream.process;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import oal.stream.decode.AcceptedBatch;

/** Batches of one topic of an access point that wait for their turn, in order of incarnation and sequence number. */
final class BatchQueue {
    private final Incarnations boots;
    private final List<AcceptedBatch> waiting = new ArrayList<>();
    private long bytes;
    private boolean polled;
    private long polledBoot;
    private long polledSeq;

    BatchQueue(Incarnations boots) {
        this.boots = boots;
    }

    /** False: a later one was processed already, so this one is late. */
    boolean add(AcceptedBatch b) {
        if (polled && compare(b.bootId, b.seq, polledBoot, polledSeq) <= 0) return false;
        int i = waiting.size();
        while (i > 0 && compare(waiting.get(i - 1).bootId, waiting.get(i - 1).seq, b.bootId, b.seq) > 0) i--;
        waiting.add(i, b);
        bytes += b.value.length;
        return true;
    }

    private int compare(long boot1, long seq1, long boot2, long seq2) {
        return boot1 == boot2 ? Long.compare(seq1, seq2) : Integer.compare(boots.order(boot1), boots.order(boot2));
    }

    AcceptedBatch head() {
        return waiting.isEmpty() ? null : waiting.get(0);
    }

    /** Is the head the batch that follows the one polled last? */
    boolean headFollows() {
        if (waiting.isEmpty()) return false;
        AcceptedBatch b = waiting.get(0);
        if (!polled) return true;
        return b.bootId == polledBoot ? b.seq == polledSeq + 1 : b.seq == 0;
    }

    AcceptedBatch poll() {
        AcceptedBatch b = waiting.remove(0);
        bytes -= b.value.length;
        polled = true;
        polledBoot = b.bootId;
        polledSeq = b.seq;
        return b;
    }

    int size() {
        return waiting.size();
    }

    long bytes() {
        return bytes;
    }

    void write(DataOutput out) throws IOException {
        out.writeBoolean(polled);
        out.writeLong(polledBoot);
        out.writeLong(polledSeq);
        out.writeInt(waiting.size());
        for (AcceptedBatch b : waiting) b.write(out);
    }

    void read(DataInput in) throws IOException {
        polled = in.readBoolean();
        polledBoot = in.readLong();
        polledSeq = in.readLong();
        int n = in.readInt();
        for (int i = 0; i < n; i++) {
            waiting.add(AcceptedBatch.read(in));
            bytes += waiting.get(i).value.length;
        }
    }
}
