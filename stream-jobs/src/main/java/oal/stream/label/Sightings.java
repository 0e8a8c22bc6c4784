package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;

/**
 * When payload of one flow passed the tap last, as far as its receiver has not acknowledged it. First sights are kept
 * as marks in order of sequence, one a millisecond at most; at {@link #MAX_MARKS} two neighbours become one, with the
 * earlier time. What passed out of order is kept apart: at most {@link #MAX_APART} ranges, the oldest then gives way.
 */
final class Sightings {
    static final int MAX_MARKS = 256;
    static final int MAX_APART = 64;
    private static final long GRAIN_US = 1000;
    /** No time: the range is not known. */
    static final long UNKNOWN = Long.MIN_VALUE;

    /** Payload from {@code end[i − 1]} to {@code end[i]} was seen at {@code us[i]}. */
    private int[] end = new int[8];
    private long[] us = new long[8];
    private int marks;
    /** Pairs [from, to), the newest last. */
    private int[] apart = new int[4];
    private long[] apartUs = new long[2];
    private int aparts;
    private boolean acknowledges;
    private int acknowledged;

    void clear() {
        marks = aparts = 0;
        acknowledges = false;
    }

    /** New payload that ends at {@code to}, after all that was seen. */
    void next(int to, long atUs) {
        if (marks > 0 && atUs - us[marks - 1] < GRAIN_US) {
            end[marks - 1] = to;
            return;
        }
        if (marks == MAX_MARKS) halve();
        if (marks == end.length) {
            end = java.util.Arrays.copyOf(end, 2 * marks);
            us = java.util.Arrays.copyOf(us, 2 * marks);
        }
        end[marks] = to;
        us[marks++] = atUs;
    }

    private void halve() {
        for (int i = 0; i < marks / 2; i++) {
            end[i] = end[2 * i + 1];
            us[i] = us[2 * i];
        }
        marks /= 2;
    }

    /** Payload [from, to) that does not follow on what was seen: again, or for the first time, late. */
    void apart(int from, int to, long atUs) {
        if (aparts == MAX_APART) removeApart(0);
        if (2 * aparts == apart.length) {
            apart = java.util.Arrays.copyOf(apart, 4 * aparts);
            apartUs = java.util.Arrays.copyOf(apartUs, 2 * aparts);
        }
        apart[2 * aparts] = from;
        apart[2 * aparts + 1] = to;
        apartUs[aparts++] = atUs;
    }

    private void removeApart(int i) {
        System.arraycopy(apart, 2 * (i + 1), apart, 2 * i, 2 * (aparts - i - 1));
        System.arraycopy(apartUs, i + 1, apartUs, i, aparts - i - 1);
        aparts--;
    }

    /** The receiver has everything before {@code number}. */
    void acknowledged(int number) {
        if (acknowledges && number - acknowledged <= 0) return;
        acknowledges = true;
        acknowledged = number;
        int gone = 0;
        while (gone < marks && end[gone] - number <= 0) gone++;
        if (gone > 0) {
            System.arraycopy(end, gone, end, 0, marks - gone);
            System.arraycopy(us, gone, us, 0, marks - gone);
            marks -= gone;
        }
        for (int i = aparts - 1; i >= 0; i--) if (apart[2 * i + 1] - number <= 0) removeApart(i);
    }

    /** Has the receiver all of what ends at {@code to}? */
    boolean has(int to) {
        return acknowledges && to - acknowledged <= 0;
    }

    /** When payload of [from, to) passed last, µs; {@link #UNKNOWN} if nobody knows. */
    long last(int from, int to) {
        if (acknowledges && acknowledged - from > 0) from = acknowledged;
        for (int i = aparts - 1; i >= 0; i--) {
            if (apart[2 * i] - to < 0 && apart[2 * i + 1] - from > 0) return apartUs[i];
        }
        for (int i = 0; i < marks; i++) if (end[i] - from > 0) return us[i];
        return UNKNOWN;
    }

    void write(DataOutput out) throws IOException {
        out.writeBoolean(acknowledges);
        out.writeInt(acknowledged);
        out.writeShort(marks);
        for (int i = 0; i < marks; i++) {
            out.writeInt(end[i]);
            out.writeLong(us[i]);
        }
        out.writeByte(aparts);
        for (int i = 0; i < aparts; i++) {
            out.writeInt(apart[2 * i]);
            out.writeInt(apart[2 * i + 1]);
            out.writeLong(apartUs[i]);
        }
    }

    void read(DataInput in) throws IOException {
        acknowledges = in.readBoolean();
        acknowledged = in.readInt();
        marks = in.readUnsignedShort();
        if (marks > MAX_MARKS) throw new IOException(marks + " marks of a flow; at most " + MAX_MARKS + " are kept");
        end = new int[Math.max(8, marks)];
        us = new long[end.length];
        for (int i = 0; i < marks; i++) {
            end[i] = in.readInt();
            us[i] = in.readLong();
        }
        aparts = in.readUnsignedByte();
        apart = new int[Math.max(4, 2 * aparts)];
        apartUs = new long[apart.length / 2];
        for (int i = 0; i < aparts; i++) {
            apart[2 * i] = in.readInt();
            apart[2 * i + 1] = in.readInt();
            apartUs[i] = in.readLong();
        }
    }
}
