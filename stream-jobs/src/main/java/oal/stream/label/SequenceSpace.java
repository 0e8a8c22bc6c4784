package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;

/**
 * Which payload of one direction of a TCP connection has been seen, in 32-bit sequence numbers that wrap. Keeps the end
 * of what was seen and the holes before it. At most {@link #MAX_HOLES} holes are kept; the oldest then counts as seen.
 */
final class SequenceSpace {
    static final int MAX_HOLES = 64;
    /**
     * A jump further than this, forth or back, is a new connection whose SYN was missed. Windows in use are far below
     * it.
     */
    static final int FAR_BYTES = 1 << 28;

    private boolean open;
    private int next;
    /** Holes as [start, end) pairs, in order of sequence. */
    private int[] hole = new int[4];
    private int holes;
    /** Did the last observation begin a connection? Not part of the state. */
    private boolean restarted;

    /** A SYN was seen: payload starts at {@code first}. */
    void restart(int first) {
        open = true;
        next = first;
        holes = 0;
    }

    /** Whether {@code seq} is the byte before the next new one, as in keepalives. */
    boolean isLastByte(int seq) {
        return open && seq == next - 1;
    }

    /** Where new payload begins. */
    int next() {
        return next;
    }

    /** Did the last {@link #observe} begin a connection whose SYN was missed? */
    boolean restarted() {
        return restarted;
    }

    /** Take note of payload. Returns how many of its bytes had been seen before. */
    int observe(int seq, int length) {
        int ahead = seq - next;
        restarted = !open || ahead > FAR_BYTES || ahead < -FAR_BYTES;
        if (restarted) {
            restart(seq + length);
            return 0;
        }
        if (ahead >= 0) {
            if (ahead > 0) addHole(next, seq);
            next = seq + length;
            return 0;
        }
        int end = seq + length;
        int fresh = Math.max(0, end - next);
        int old = length - fresh;
        int filled = holes == 0 ? 0 : fill(seq, seq + old);
        if (fresh > 0) next = end;
        return old - filled;
    }

    private void addHole(int from, int to) {
        if (holes == MAX_HOLES) {
            System.arraycopy(hole, 2, hole, 0, 2 * (holes - 1));
            holes--;
        }
        if (2 * holes == hole.length) hole = Arrays.copyOf(hole, hole.length * 2);
        hole[2 * holes] = from;
        hole[2 * holes + 1] = to;
        holes++;
    }

    /** Close holes within [from, to); returns the bytes that were missing there. */
    private int fill(int from, int to) {
        int filled = 0;
        for (int i = 0; i < holes; i++) {
            int start = hole[2 * i];
            int end = hole[2 * i + 1];
            if (end - from <= 0) continue;
            if (start - to >= 0) break;
            int a = start - from > 0 ? start : from;
            int b = end - to < 0 ? end : to;
            filled += b - a;
            if (a == start && b == end) {
                System.arraycopy(hole, 2 * (i + 1), hole, 2 * i, 2 * (holes - i - 1));
                holes--;
                i--;
            } else if (a == start) {
                hole[2 * i] = b;
            } else if (b == end) {
                hole[2 * i + 1] = a;
            } else if (holes == MAX_HOLES) {
                hole[2 * i + 1] = a; // no room to split: what follows counts as seen
            } else {
                if (2 * holes == hole.length) hole = Arrays.copyOf(hole, hole.length * 2);
                System.arraycopy(hole, 2 * (i + 1), hole, 2 * (i + 2), 2 * (holes - i - 1));
                hole[2 * i + 1] = a;
                hole[2 * i + 2] = b;
                hole[2 * i + 3] = end;
                holes++;
                i++;
            }
        }
        return filled;
    }

    int holes() {
        return holes;
    }

    void write(DataOutput out) throws IOException {
        out.writeBoolean(open);
        out.writeInt(next);
        out.writeByte(holes);
        for (int i = 0; i < 2 * holes; i++) out.writeInt(hole[i]);
    }

    void read(DataInput in) throws IOException {
        open = in.readBoolean();
        next = in.readInt();
        holes = in.readUnsignedByte();
        hole = new int[Math.max(4, 2 * holes)];
        for (int i = 0; i < 2 * holes; i++) hole[i] = in.readInt();
    }
}
