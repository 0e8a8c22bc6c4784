package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
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
    private static final int ACK = 16;
    private static final int OFFERS_MSS = 2;

    private final Map<Long, DownlinkFlow> byId = new HashMap<>();
    private long sweptUs;

    /** @param losses takes what passed again, without its cause */
    void add(BatchDecoder batch, LabelBuckets buckets, long untilUs, Consumer<Loss> losses) {
        TableRows t = batch.table(Tables.PACKET.id());
        if (t.rows == 0) return;
        Rows rows = new Rows(t, t.timesUs(batch.header()), buckets, untilUs, losses);
        long[] flow = t.column(Tables.Packet.FLOW);
        long[] direction = t.column(Tables.Packet.DIRECTION);
        // Runs of a flow's two directions, each in order of time: they are read together, so that ACKs come in time.
        int[] first = new int[2 * batch.flows().size];
        int[] last = new int[first.length];
        int[] next = new int[t.runs];
        int[] start = new int[t.runs];
        Arrays.fill(first, -1);
        for (int run = 0, at = 0; run < t.runs; at += t.runRows[run++]) {
            int place = (int) (2 * flow[run] + (direction[run] == DOWN ? 0 : 1));
            start[run] = at;
            next[run] = -1;
            if (first[place] < 0) first[place] = run;
            else next[last[place]] = run;
            last[place] = run;
        }
        long latestUs = Long.MIN_VALUE;
        for (int i = 0; i < batch.flows().size; i++) {
            if (first[2 * i] < 0 && first[2 * i + 1] < 0) continue;
            DownlinkFlow f = flow(batch.flows().flowId[i], rows.lastUs(start, last, first, i));
            rows.read(f, batch.flows().flowId[i], batch.flows().stationMac[i],
                    new Cursor(t, start, next, first[2 * i]), new Cursor(t, start, next, first[2 * i + 1]));
            latestUs = Math.max(latestUs, f.lastSeenUs);
        }
        sweep(latestUs);
    }

    /** Row after row of some runs. */
    private static final class Cursor {
        private final TableRows t;
        private final int[] start;
        private final int[] next;
        int run;
        int row;

        Cursor(TableRows t, int[] start, int[] next, int run) {
            this.t = t;
            this.start = start;
            this.next = next;
            this.run = run;
            if (run >= 0) row = start[run];
        }

        boolean more() {
            return run >= 0;
        }

        void advance() {
            if (++row < start[run] + t.runRows[run]) return;
            run = next[run];
            if (run >= 0) row = start[run];
        }
    }

    /** The packets of a batch. */
    private static final class Rows {
        private final TableRows t;
        private final long[] ts;
        private final LabelBuckets buckets;
        private final long untilUs;
        private final Consumer<Loss> losses;
        private final long[] seq;
        private final long[] ack;
        private final long[] bytes;
        private final long[] flags;

        Rows(TableRows t, long[] ts, LabelBuckets buckets, long untilUs, Consumer<Loss> losses) {
            this.t = t;
            this.ts = ts;
            this.buckets = buckets;
            this.untilUs = untilUs;
            this.losses = losses;
            seq = t.column(Tables.Packet.SEQ);
            ack = t.column(Tables.Packet.ACK);
            bytes = t.column(Tables.Packet.PAYLOAD_BYTES);
            flags = t.column(Tables.Packet.FLAGS);
        }

        long lastUs(int[] start, int[] last, int[] first, int flow) {
            long us = Long.MIN_VALUE;
            for (int place = 2 * flow; place < 2 * flow + 2; place++) {
                if (first[place] < 0) continue;
                us = Math.max(us, ts[start[last[place]] + t.runRows[last[place]] - 1]);
            }
            return us;
        }

        void read(DownlinkFlow f, long flowId, long mac, Cursor down, Cursor up) {
            while (down.more() || up.more()) {
                if (!up.more() || down.more() && ts[down.row] <= ts[up.row]) {
                    down(f, flowId, mac, down.run, down.row);
                    down.advance();
                } else {
                    up(f, up.row);
                    up.advance();
                }
            }
        }

        private void up(DownlinkFlow f, int i) {
            if ((flags[i] & SYN) != 0) syn(f, t, i);
            else if ((flags[i] & ACK) != 0) f.sightings.acknowledged((int) ack[i]);
        }

        private void down(DownlinkFlow f, long flowId, long mac, int run, int i) {
            int s = (int) seq[i];
            if ((flags[i] & SYN) != 0) {
                syn(f, t, i);
                f.sequence.restart(s + 1);
                f.sightings.clear();
                return;
            }
            if (bytes[i] <= 0 || (flags[i] & RST) != 0) return;
            int length = (int) Math.min(bytes[i], SequenceSpace.FAR_BYTES);
            if (length == 1 && f.sequence.isLastByte(s)) return; // keepalive
            int before = f.sequence.next();
            int repeated = f.sequence.observe(s, length);
            // A window probe sends one byte of what the next segment sends again.
            if (repeated == 1 && length > 1) repeated = 0;
            Loss loss = sighted(f, s, length, before, repeated, ts[i]);
            if (ts[i] >= untilUs) return;
            boolean timestamps = !t.absent(run, TS_VAL_OPTIONAL);
            long bucket = buckets.bucketOf(ts[i]);
            f.markPayload(bucket);
            buckets.offered(bucket, f.segments(length, timestamps), length);
            if (repeated == 0) return;
            int segments = f.segments(repeated, timestamps);
            buckets.lost(bucket, segments, repeated);
            if (loss == null) return;
            loss.flowId = flowId;
            loss.stationMac = mac;
            loss.pkts = segments;
            losses.accept(loss);
        }

        /** Notes when the segment passed. A loss if its payload was there before and had not arrived. */
        private static Loss sighted(DownlinkFlow f, int s, int length, int before, int repeated, long us) {
            int end = s + length;
            if (f.sequence.restarted()) f.sightings.clear();
            if (f.sequence.restarted() || s - before >= 0) {
                f.sightings.next(end, us);
                return null;
            }
            int oldEnd = end - before < 0 ? end : before;
            Loss loss = null;
            if (repeated > 0 && !f.sightings.has(oldEnd)) {
                loss = new Loss();
                long seenUs = f.sightings.last(s, oldEnd);
                loss.seq = s & 0xFFFFFFFFL;
                loss.bytes = repeated;
                loss.seenUs = seenUs == Sightings.UNKNOWN ? us : Math.min(seenUs, us);
                loss.resentUs = us;
            }
            f.sightings.apart(s, oldEnd, us);
            if (end - before > 0) f.sightings.next(end, us);
            return loss;
        }
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

    /** @param sighted whether it was written with the times of what passed */
    void read(DataInput in, boolean sighted) throws IOException {
        byId.clear();
        sweptUs = in.readLong();
        int n = in.readInt();
        for (int i = 0; i < n; i++) {
            long id = in.readLong();
            DownlinkFlow f = new DownlinkFlow();
            f.read(in, sighted);
            byId.put(id, f);
        }
    }

    private static final int TS_VAL_OPTIONAL = Tables.PACKET.columns().get(Tables.Packet.TS_VAL).optional();
}
