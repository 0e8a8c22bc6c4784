package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import oal.schema.Tables;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.TableRows;

/**
 * Offered and lost payload, from the packet rows. Flows idle for {@link #EXPIRY_US} are forgotten; at most
 * {@link #MAX_FLOWS} are kept.
 */
final class DownlinkFlows {
    static final long EXPIRY_US = 120_000_000;
    static final int MAX_FLOWS = 8192;

    private static final int DOWN = 0;
    private static final int SYN = 2;
    private static final int RST = 4;
    private static final int OFFERS_MSS = 2;

    private final Map<Long, DownlinkFlow> byId = new HashMap<>();
    private long sweptUs;

    void add(BatchDecoder batch, LabelBuckets buckets, long untilUs) {
        TableRows t = batch.table(Tables.PACKET.id());
        if (t.rows == 0) return;
        long[] ts = t.timesUs(batch.header());
        long[] flow = t.column(Tables.Packet.FLOW);
        long[] direction = t.column(Tables.Packet.DIRECTION);
        int at = 0;
        for (int run = 0; run < t.runs; run++) {
            int end = at + t.runRows[run];
            DownlinkFlow f = flow(batch.flows().flowId[(int) flow[run]], ts[end - 1]);
            if (direction[run] == DOWN) addDown(f, t, run, at, end, ts, buckets, untilUs);
            else addUp(f, t, at, end);
            at = end;
        }
        sweep(ts[t.rows - 1]);
    }

    private void addDown(DownlinkFlow f, TableRows t, int run, int at, int end, long[] ts, LabelBuckets buckets,
            long untilUs) {
        long[] seq = t.column(Tables.Packet.SEQ);
        long[] bytes = t.column(Tables.Packet.PAYLOAD_BYTES);
        long[] flags = t.column(Tables.Packet.FLAGS);
        boolean timestamps = !t.absent(run, TS_VAL_OPTIONAL);
        for (int i = at; i < end; i++) {
            int s = (int) seq[i];
            if ((flags[i] & SYN) != 0) {
                syn(f, t, i);
                f.sequence.restart(s + 1);
            } else if (bytes[i] > 0 && (flags[i] & RST) == 0) {
                int length = (int) Math.min(bytes[i], SequenceSpace.FAR_BYTES);
                if (length == 1 && f.sequence.isLastByte(s)) continue; // keepalive
                int repeated = f.sequence.observe(s, length);
                // A window probe sends one byte of what the next segment sends again.
                if (repeated == 1 && length > 1) repeated = 0;
                if (ts[i] >= untilUs) continue;
                long bucket = buckets.bucketOf(ts[i]);
                f.markPayload(bucket);
                buckets.offered(bucket, f.segments(length, timestamps), length);
                if (repeated > 0) buckets.lost(bucket, f.segments(repeated, timestamps), repeated);
            }
        }
    }

    private static void addUp(DownlinkFlow f, TableRows t, int at, int end) {
        long[] flags = t.column(Tables.Packet.FLAGS);
        for (int i = at; i < end; i++) if ((flags[i] & SYN) != 0) syn(f, t, i);
    }

    private static void syn(DownlinkFlow f, TableRows t, int row) {
        if ((t.column(Tables.Packet.SYN_OPTIONS)[row] & OFFERS_MSS) != 0) {
            f.offerMss((int) t.column(Tables.Packet.MSS_BYTES)[row]);
        }
    }

    private DownlinkFlow flow(long id, long nowUs) {
        DownlinkFlow f = byId.get(id);
        if (f == null) {
            if (byId.size() >= MAX_FLOWS) forgetOldest();
            f = new DownlinkFlow();
            byId.put(id, f);
        }
        f.lastSeenUs = Math.max(f.lastSeenUs, nowUs);
        return f;
    }

    private void sweep(long nowUs) {
        if (nowUs - sweptUs < EXPIRY_US / 8 && nowUs >= sweptUs) return;
        sweptUs = nowUs;
        byId.values().removeIf(f -> nowUs - f.lastSeenUs > EXPIRY_US);
    }

    /** Forget the eighth that was idle longest. */
    private void forgetOldest() {
        long[] seen = byId.values().stream().mapToLong(f -> f.lastSeenUs).toArray();
        Arrays.sort(seen);
        long limit = seen[seen.length / 8];
        byId.values().removeIf(f -> f.lastSeenUs <= limit);
    }

    /** Flows with payload in the {@code n} buckets that end with {@code bucket}. */
    int active(long bucket, int n) {
        int active = 0;
        for (DownlinkFlow f : byId.values()) if (f.hadPayload(bucket, n)) active++;
        return active;
    }

    int size() {
        return byId.size();
    }

    void clear() {
        byId.clear();
        sweptUs = 0;
    }

    void write(DataOutput out) throws IOException {
        out.writeLong(sweptUs);
        out.writeInt(byId.size());
        for (Map.Entry<Long, DownlinkFlow> e : byId.entrySet()) {
            out.writeLong(e.getKey());
            e.getValue().write(out);
        }
    }

    void read(DataInput in) throws IOException {
        byId.clear();
        sweptUs = in.readLong();
        int n = in.readInt();
        for (int i = 0; i < n; i++) {
            long id = in.readLong();
            DownlinkFlow f = new DownlinkFlow();
            f.read(in);
            byId.put(id, f);
        }
    }

    private static final int TS_VAL_OPTIONAL = Tables.PACKET.columns().get(Tables.Packet.TS_VAL).optional();
}
