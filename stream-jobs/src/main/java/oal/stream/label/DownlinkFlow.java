package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;

/** State of one TCP connection: its downlink payload seen so far, and the buckets that had some. */
final class DownlinkFlow {
    /** Payload of a full segment on Ethernet when no SYN was seen: 1500 − 40. */
    private static final int DEFAULT_MSS_BYTES = 1460;
    private static final int MIN_MSS_BYTES = 88;
    /** TCP timestamps, where used, take this many bytes of each segment. */
    private static final int TIMESTAMP_OPTION_BYTES = 12;

    final SequenceSpace sequence = new SequenceSpace();
    final Sightings sightings = new Sightings();
    long lastSeenUs;
    private int mss;
    /** Bit i: payload in bucket {@code lastBucket − i}. */
    private long payload;
    private long lastBucket;

    /** A SYN of either side offered this MSS; segments keep to the smaller. */
    void offerMss(int bytes) {
        if (bytes >= MIN_MSS_BYTES && (mss == 0 || bytes < mss)) mss = bytes;
    }

    /** Number of segments in {@code bytes} of payload: the capture may show several as one packet. */
    int segments(int bytes, boolean timestamps) {
        int full = (mss == 0 ? DEFAULT_MSS_BYTES : mss) - (timestamps ? TIMESTAMP_OPTION_BYTES : 0);
        return bytes <= full ? 1 : (bytes + full - 1) / full;
    }

    void markPayload(long bucket) {
        long shift = bucket - lastBucket;
        if (shift > 0) {
            payload = shift < 64 ? payload << shift : 0;
            lastBucket = bucket;
            payload |= 1;
        } else if (shift > -64) {
            payload |= 1L << -shift;
        }
    }

    /** Was there payload in any of the {@code n} buckets that end with {@code bucket}? */
    boolean hadPayload(long bucket, int n) {
        long ago = lastBucket - bucket;
        long window = n >= 64 ? -1 : (1L << n) - 1;
        if (ago >= 64 || ago <= -64) return false;
        return ((ago >= 0 ? payload >>> ago : payload << -ago) & window) != 0;
    }

    void write(DataOutput out) throws IOException {
        sequence.write(out);
        sightings.write(out);
        out.writeLong(lastSeenUs);
        out.writeInt(mss);
        out.writeLong(payload);
        out.writeLong(lastBucket);
    }

    void read(DataInput in, boolean sighted) throws IOException {
        sequence.read(in);
        if (sighted) sightings.read(in);
        lastSeenUs = in.readLong();
        mss = in.readInt();
        payload = in.readLong();
        lastBucket = in.readLong();
    }
}
