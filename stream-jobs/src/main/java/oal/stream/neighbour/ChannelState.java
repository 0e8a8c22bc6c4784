package oal.stream.neighbour;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import oal.stream.state.DataText;

/** Access points on one channel of a site, each with its latest second. Times are the brokers'. */
final class ChannelState {
    /** An access point that was silent for this long is left out. */
    static final long SILENT_MS = 15_000;
    /** Access points of a record. */
    static final int MAX_PUBLISHED = 64;
    /** Access points that are remembered; of more, the least busy are not. */
    static final int MAX_KNOWN = 256;

    private static final int VERSION = 1;
    private static final Comparator<ApSecond> BUSIEST = Comparator.<ApSecond>comparingInt(s -> -s.txAirtimePermille)
            .thenComparingLong(s -> -s.txKbps).thenComparing(s -> s.apId);

    private final Map<String, ApSecond> aps = new TreeMap<>();
    private long latestMs = Long.MIN_VALUE;
    /** Number of the interval in which a record was last due; {@code Long.MIN_VALUE}: nothing came yet. */
    long interval = Long.MIN_VALUE;
    /** A record of this channel is out, and has not been withdrawn. */
    boolean published;
    /** When the timer was set for, ms. */
    long timerMs = Long.MIN_VALUE;

    /** False: it is older than what is known. */
    boolean add(ApSecond second) {
        if (second.takenMs + SILENT_MS < latestMs) return false;
        ApSecond before = aps.get(second.apId);
        if (before != null && before.takenMs > second.takenMs) return false;
        aps.put(second.apId, second);
        latestMs = Math.max(latestMs, second.takenMs);
        if (aps.size() > MAX_KNOWN) aps.remove(aps.values().stream().max(BUSIEST).orElseThrow().apId);
        return true;
    }

    long latestMs() {
        return latestMs;
    }

    /** Time is {@code nowMs} or later: remove access points that were silent for too long. */
    void advance(long nowMs) {
        latestMs = Math.max(latestMs, nowMs);
        aps.values().removeIf(ap -> ap.takenMs + SILENT_MS < latestMs);
    }

    /** When the next access point will have been silent for too long. */
    long silentMs() {
        return aps.values().stream().mapToLong(ap -> ap.takenMs).min().orElse(latestMs) + SILENT_MS + 1;
    }

    int size() {
        return aps.size();
    }

    List<ApSecond> busiest() {
        return aps.values().stream().sorted(BUSIEST).limit(MAX_PUBLISHED).toList();
    }

    void write(DataOutput out) throws IOException {
        out.writeByte(VERSION);
        out.writeLong(latestMs);
        out.writeLong(interval);
        out.writeBoolean(published);
        out.writeLong(timerMs);
        out.writeInt(aps.size());
        for (ApSecond s : aps.values()) {
            DataText.write(out, s.apId);
            DataText.write(out, s.site);
            out.writeInt(s.frequencyMhz);
            out.writeLong(s.takenMs);
            out.writeInt(s.stations);
            out.writeLong(s.txKbps);
            out.writeInt(s.txAirtimePermille);
            out.writeInt(s.busyPermille);
            out.writeInt(s.lossPermille);
            out.writeLong(s.backlogBytes);
        }
    }

    static ChannelState read(DataInput in) throws IOException {
        int version = in.readUnsignedByte();
        if (version != VERSION) {
            throw new IOException("state of a channel has version " + version + "; this job reads " + VERSION);
        }
        ChannelState c = new ChannelState();
        c.latestMs = in.readLong();
        c.interval = in.readLong();
        c.published = in.readBoolean();
        c.timerMs = in.readLong();
        for (int n = in.readInt(); n > 0; n--) {
            ApSecond s = new ApSecond();
            s.apId = DataText.read(in);
            s.site = DataText.read(in);
            s.frequencyMhz = in.readInt();
            s.takenMs = in.readLong();
            s.stations = in.readInt();
            s.txKbps = in.readLong();
            s.txAirtimePermille = in.readInt();
            s.busyPermille = in.readInt();
            s.lossPermille = in.readInt();
            s.backlogBytes = in.readLong();
            c.aps.put(s.apId, s);
        }
        return c;
    }
}
