package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import oal.schema.Tables;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Names;
import oal.stream.codec.TableRows;

/**
 * Which counters tell of a station's drops, and when they grew: its own queue (TXQ), the qdiscs of its interface, which
 * it shares with others, and its MAC failures. A counter that the driver does not fill reads 0 like one that never
 * moved, so one is believed to exist only when something shows it: packets taken from the TXQ; a retry or a failure of
 * the MAC; a row of the qdisc.
 */
final class StationCounters {
    private static final Set<String> NO_QDISC = Set.of("mac80211", "noqueue", "mq", "mqprio");
    /** These drop what comes when they are full, so what they dropped was seen just before. */
    private static final Set<String> TAIL_DROP = Set.of("pfifo", "pfifo_fast", "bfifo");
    private static final int CAUSE_QDISC = 3;
    private static final int CAUSE_MAC = 4;
    static final int MAX_STATIONS = 4096;
    static final int MAX_QDISCS = 256;

    /** A station. */
    static final class Station {
        long device;
        boolean txq;
        boolean air;
        long heardUs;
        final DropSteps queueDrops = new DropSteps();
        final DropSteps macFailures = new DropSteps();
    }

    /** A qdisc of an interface. */
    record Handle(long device, long handle) {}

    /** Its drops. */
    static final class Qdisc {
        boolean tailDrop;
        boolean known;
        long heardUs;
        final DropSteps drops = new DropSteps();
    }

    /** What is silent for so long has gone. */
    private static final long GONE_US = 60_000_000;

    private final Map<Long, Station> stations = new HashMap<>();
    private final Map<Handle, Qdisc> qdiscs = new HashMap<>();
    private long sweptUs;

    static void wants(boolean[][] wanted) {
        for (int c : new int[] {Tables.Station.MAC, Tables.Station.DEVICE, Tables.Station.TX_RETRIES,
                Tables.Station.TX_FAILED}) {
            wanted[Tables.STATION.id()][c] = true;
        }
        for (int c : new int[] {Tables.StationAc.MAC, Tables.StationAc.TX_PKTS}) {
            wanted[Tables.STATION_AC.id()][c] = true;
        }
        for (int c : new int[] {Tables.Queue.DEVICE, Tables.Queue.HANDLE, Tables.Queue.KIND}) {
            wanted[Tables.QUEUE.id()][c] = true;
        }
        for (int c : new int[] {Tables.DropEvent.CAUSE, Tables.DropEvent.DEVICE, Tables.DropEvent.MAC,
                Tables.DropEvent.QUEUE, Tables.DropEvent.TICK, Tables.DropEvent.COUNT}) {
            wanted[Tables.DROP_EVENT.id()][c] = true;
        }
    }

    /** Which counters there are. */
    void samples(BatchDecoder batch) {
        long now = batch.header().t0Us;
        TableRows t = batch.table(Tables.STATION.id());
        for (int run = 0, at = 0; run < t.runs; at += t.runRows[run++]) {
            Station s = station(t.column(Tables.Station.MAC)[run], now);
            if (s == null) continue;
            s.device = device(batch, t.column(Tables.Station.DEVICE)[run]);
            int last = at + t.runRows[run] - 1;
            s.air |= t.column(Tables.Station.TX_RETRIES)[last] > 0 || t.column(Tables.Station.TX_FAILED)[last] > 0;
        }
        t = batch.table(Tables.STATION_AC.id());
        for (int run = 0, at = 0; run < t.runs; at += t.runRows[run++]) {
            Station s = station(t.column(Tables.StationAc.MAC)[run], now);
            if (s != null) s.txq |= t.column(Tables.StationAc.TX_PKTS)[at + t.runRows[run] - 1] > 0;
        }
        t = batch.table(Tables.QUEUE.id());
        for (int run = 0; run < t.runs; run++) {
            String kind = batch.header().name((int) t.column(Tables.Queue.KIND)[run]);
            if (NO_QDISC.contains(kind)) continue;
            Qdisc q = qdisc(new Handle(device(batch, t.column(Tables.Queue.DEVICE)[run]),
                    t.column(Tables.Queue.HANDLE)[run]), now);
            if (q == null) continue;
            q.known = true;
            q.tailDrop = TAIL_DROP.contains(kind);
        }
        sweep(now);
    }

    /** When they grew. */
    void drops(BatchDecoder batch, long untilUs) {
        TableRows t = batch.table(Tables.DROP_EVENT.id());
        if (t.rows == 0) return;
        long[] ts = t.timesUs(batch.header());
        long[] count = t.column(Tables.DropEvent.COUNT);
        for (int run = 0, at = 0; run < t.runs; run++) {
            long cause = t.column(Tables.DropEvent.CAUSE)[run];
            DropSteps steps = null;
            if (cause == CAUSE_QDISC) {
                Qdisc q = qdisc(new Handle(device(batch, t.column(Tables.DropEvent.DEVICE)[run]),
                        t.column(Tables.DropEvent.QUEUE)[run]), ts[at]);
                if (q != null) steps = q.drops;
            } else {
                Station s = station(t.column(Tables.DropEvent.MAC)[run], ts[at]);
                if (s != null) {
                    steps = cause == CAUSE_MAC ? s.macFailures : s.queueDrops;
                    s.air |= cause == CAUSE_MAC;
                    s.txq |= cause != CAUSE_MAC;
                }
            }
            for (int end = at + t.runRows[run]; at < end; at++) {
                if (steps != null && ts[at] < untilUs) steps.add(ts[at], count[at]);
            }
        }
    }

    /** Null if nothing was heard of it. */
    Station of(long mac) {
        return stations.get(mac);
    }

    /** The qdiscs of the interface. */
    Iterable<Qdisc> qdiscs(long device) {
        return () -> qdiscs.entrySet().stream().filter(e -> e.getKey().device == device && e.getValue().known)
                .map(Map.Entry::getValue).iterator();
    }

    private static long device(BatchDecoder batch, long name) {
        return Names.hash(batch.header().name((int) name));
    }

    private Station station(long mac, long nowUs) {
        Station s = stations.get(mac);
        if (s == null && mac != 0 && stations.size() < MAX_STATIONS) stations.put(mac, s = new Station());
        if (s != null) s.heardUs = nowUs;
        return s;
    }

    private Qdisc qdisc(Handle handle, long nowUs) {
        Qdisc q = qdiscs.get(handle);
        if (q == null && qdiscs.size() < MAX_QDISCS) qdiscs.put(handle, q = new Qdisc());
        if (q != null) q.heardUs = nowUs;
        return q;
    }

    private void sweep(long nowUs) {
        if (Math.abs(nowUs - sweptUs) < GONE_US / 8) return;
        sweptUs = nowUs;
        stations.values().removeIf(s -> Math.abs(nowUs - s.heardUs) > GONE_US);
        qdiscs.values().removeIf(q -> Math.abs(nowUs - q.heardUs) > GONE_US);
    }

    int size() {
        return stations.size() + qdiscs.size();
    }

    void clear() {
        stations.clear();
        qdiscs.clear();
        sweptUs = 0;
    }

    void write(DataOutput out) throws IOException {
        out.writeLong(sweptUs);
        out.writeInt(stations.size());
        for (Map.Entry<Long, Station> e : stations.entrySet()) {
            Station s = e.getValue();
            out.writeLong(e.getKey());
            out.writeLong(s.device);
            out.writeLong(s.heardUs);
            out.writeByte((s.txq ? 1 : 0) | (s.air ? 2 : 0));
            s.queueDrops.write(out);
            s.macFailures.write(out);
        }
        out.writeInt(qdiscs.size());
        for (Map.Entry<Handle, Qdisc> e : qdiscs.entrySet()) {
            Qdisc q = e.getValue();
            out.writeLong(e.getKey().device);
            out.writeLong(e.getKey().handle);
            out.writeLong(q.heardUs);
            out.writeByte((q.known ? 1 : 0) | (q.tailDrop ? 2 : 0));
            q.drops.write(out);
        }
    }

    void read(DataInput in) throws IOException {
        clear();
        sweptUs = in.readLong();
        for (int n = in.readInt(); n > 0; n--) {
            Station s = new Station();
            stations.put(in.readLong(), s);
            s.device = in.readLong();
            s.heardUs = in.readLong();
            int flags = in.readUnsignedByte();
            s.txq = (flags & 1) != 0;
            s.air = (flags & 2) != 0;
            s.queueDrops.read(in);
            s.macFailures.read(in);
        }
        for (int n = in.readInt(); n > 0; n--) {
            Qdisc q = new Qdisc();
            qdiscs.put(new Handle(in.readLong(), in.readLong()), q);
            q.heardUs = in.readLong();
            int flags = in.readUnsignedByte();
            q.known = (flags & 1) != 0;
            q.tailDrop = (flags & 2) != 0;
            q.drops.read(in);
        }
    }
}
