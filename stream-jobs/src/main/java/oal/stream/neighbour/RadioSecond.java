package oal.stream.neighbour;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;

/** Sums of one interface over the second under way. None overflows, whatever an access point sends. */
final class RadioSecond {
    private static final long MAX_BYTES = 1L << 48;
    private static final long MAX_US = 1L << 48;
    private static final long MAX_MS = 1L << 40;
    private static final long MAX_BYTE_US = 1L << 61;

    /** 0 while no row of the channel has come. */
    long frequencyMhz;
    /** Stations that had traffic and have left. */
    int left;
    long txBytes;
    long airtimeUs;
    long backlogByteUs;
    long activeMs;
    long busyMs;
    long txMs;

    void sent(long bytes, long us) {
        txBytes = Math.min(MAX_BYTES, txBytes + Math.min(bytes, MAX_BYTES));
        airtimeUs = Math.min(MAX_US, airtimeUs + Math.min(us, MAX_US));
    }

    void queued(long byteUs) {
        backlogByteUs = Math.min(MAX_BYTE_US, backlogByteUs + Math.min(byteUs, MAX_BYTE_US));
    }

    void sensed(long active, long busy, long tx) {
        activeMs = Math.min(MAX_MS, activeMs + Math.min(active, MAX_MS));
        busyMs = Math.min(MAX_MS, busyMs + Math.min(busy, MAX_MS));
        txMs = Math.min(MAX_MS, txMs + Math.min(tx, MAX_MS));
    }

    void write(DataOutput out) throws IOException {
        out.writeInt(left);
        for (long v : new long[] {frequencyMhz, txBytes, airtimeUs, backlogByteUs, activeMs, busyMs, txMs}) {
            out.writeLong(v);
        }
    }

    static RadioSecond read(DataInput in) throws IOException {
        RadioSecond r = new RadioSecond();
        r.left = in.readInt();
        r.frequencyMhz = in.readLong();
        r.txBytes = in.readLong();
        r.airtimeUs = in.readLong();
        r.backlogByteUs = in.readLong();
        r.activeMs = in.readLong();
        r.busyMs = in.readLong();
        r.txMs = in.readLong();
        return r;
    }
}
