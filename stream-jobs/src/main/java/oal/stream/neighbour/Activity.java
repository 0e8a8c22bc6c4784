package oal.stream.neighbour;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import oal.schema.ColumnSpec;
import oal.schema.Tables;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Counters;
import oal.stream.codec.Names;
import oal.stream.codec.TableRows;
import oal.stream.label.LabelWindow;

/**
 * What an access point does on each of its channels, second by second, from its batches of samples in order. A second
 * is as many batches as fill one. An interface belongs to the channel that its survey names; without a survey its
 * neighbours are unknown.
 */
public final class Activity {
    /** Channels of one access point; more are radios that do not exist. */
    static final int MAX_CHANNELS = 4;
    private static final int MAX_INTERFACES = 64;
    private static final long SECOND_US = 1_000_000;
    /** A batch that claims to be longer is no sample of a second. */
    private static final long MAX_BATCH_US = 10_000_000;
    private static final long MAX_U32 = 0xFFFFFFFFL;
    private static final int MAX_U16 = 0xFFFF;
    private static final int TX_BYTES_BITS = Tables.STATION.columns().get(Tables.Station.TX_BYTES).counterBits();
    private static final ColumnSpec TX_AIRTIME = Tables.STATION.columns().get(Tables.Station.TX_AIRTIME_US);
    /** Of each of the survey's counters. */
    private static final int SURVEY_BITS = Tables.CHANNEL.columns().get(Tables.Channel.ACTIVE_MS).counterBits();
    private static final ColumnSpec TX_MS = Tables.CHANNEL.columns().get(Tables.Channel.TX_MS);

    /** A counter that was absent when its entity was last seen. */
    private static final long UNKNOWN = -1;

    /** A station or a channel of an interface: MAC address or frequency, and the interface's name hashed. */
    private record Entity(long id, long device) {}

    /** Counters of an entity when it was last seen, and whether bytes went to it in this second. */
    private static final class Last {
        long a;
        long b;
        long c;
        boolean active;
        int batch;
    }

    private Map<Entity, Last> stations = new HashMap<>();
    private Map<Entity, Last> channels = new HashMap<>();
    private Map<Long, RadioSecond> radios = new HashMap<>();
    private long spanUs;
    private int lossPermille;
    /** Tells entities of this batch from those that are gone. */
    private int batch;

    /** Columns that are read. */
    public static void wants(boolean[][] wanted) {
        for (int c : new int[] {Tables.Station.MAC, Tables.Station.DEVICE, Tables.Station.TX_BYTES,
                Tables.Station.TX_AIRTIME_US}) {
            wanted[Tables.STATION.id()][c] = true;
        }
        for (int c : new int[] {Tables.StationAc.DEVICE, Tables.StationAc.TICK, Tables.StationAc.BACKLOG_BYTES}) {
            wanted[Tables.STATION_AC.id()][c] = true;
        }
        for (int c : new int[] {Tables.Channel.DEVICE, Tables.Channel.FREQUENCY_MHZ, Tables.Channel.ACTIVE_MS,
                Tables.Channel.BUSY_MS, Tables.Channel.TX_MS}) {
            wanted[Tables.CHANNEL.id()][c] = true;
        }
    }

    /** Forget what was: counters of after a hole or a restart say nothing about the time before. */
    public void clear() {
        stations.clear();
        channels.clear();
        radios.clear();
        spanUs = 0;
        lossPermille = 0;
    }

    /** The label window that ended last. */
    public void ended(LabelWindow window) {
        lossPermille = !window.whole || window.offeredPkts == 0 ? 0
                : (int) Math.min(1000, window.congestionLostPkts * 1000 / window.offeredPkts);
    }

    /** Take a batch of samples that follows the one before without a hole. */
    public void add(BatchDecoder decoder) {
        long batchUs = decoder.header().endUs() - decoder.header().t0Us;
        if (batchUs > MAX_BATCH_US) {
            clear();
            return;
        }
        batch++;
        spanUs += batchUs;
        addStations(decoder);
        addChannels(decoder);
        addQueues(decoder);
        stations.entrySet().removeIf(e -> {
            if (e.getValue().batch == batch) return false;
            if (e.getValue().active) radio(e.getKey().device).left++;
            return true;
        });
        channels.entrySet().removeIf(e -> e.getValue().batch != batch);
    }

    private RadioSecond radio(long device) {
        RadioSecond radio = radios.get(device);
        if (radio == null) {
            radio = new RadioSecond();
            if (radios.size() < MAX_INTERFACES) radios.put(device, radio);
        }
        return radio;
    }

    private static long device(BatchDecoder decoder, long name) {
        return Names.hash(decoder.header().name((int) name));
    }

    private void addStations(BatchDecoder decoder) {
        TableRows t = decoder.table(Tables.STATION.id());
        if (t.rows == 0) return;
        long[] mac = t.column(Tables.Station.MAC);
        long[] device = t.column(Tables.Station.DEVICE);
        long[] bytes = t.column(Tables.Station.TX_BYTES);
        long[] airtime = t.column(Tables.Station.TX_AIRTIME_US);
        int from = 0;
        for (int run = 0; run < t.runs; run++) {
            int last = from + t.runRows[run] - 1;
            Entity station = new Entity(mac[run], device(decoder, device[run]));
            boolean timed = !t.absent(run, TX_AIRTIME.optional());
            Last before = known(stations, station, bytes[from], timed ? airtime[from] : UNKNOWN, 0);
            long sent = Counters.increment(before.a, bytes[last], TX_BYTES_BITS);
            radio(station.device).sent(sent,
                    timed ? growth(before.b, airtime, from, last, TX_AIRTIME.counterBits()) : 0);
            before.active |= sent > 0;
            before.a = bytes[last];
            before.b = timed ? airtime[last] : UNKNOWN;
            from = last + 1;
        }
    }

    private void addChannels(BatchDecoder decoder) {
        TableRows t = decoder.table(Tables.CHANNEL.id());
        if (t.rows == 0) return;
        long[] device = t.column(Tables.Channel.DEVICE);
        long[] frequency = t.column(Tables.Channel.FREQUENCY_MHZ);
        long[] active = t.column(Tables.Channel.ACTIVE_MS);
        long[] busy = t.column(Tables.Channel.BUSY_MS);
        long[] tx = t.column(Tables.Channel.TX_MS);
        int from = 0;
        for (int run = 0; run < t.runs; run++) {
            int last = from + t.runRows[run] - 1;
            Entity channel = new Entity(frequency[run], device(decoder, device[run]));
            boolean timed = !t.absent(run, TX_MS.optional());
            Last before = known(channels, channel, active[from], busy[from], timed ? tx[from] : UNKNOWN);
            RadioSecond radio = radio(channel.device);
            radio.frequencyMhz = channel.id;
            radio.sensed(Counters.increment(before.a, active[last], SURVEY_BITS),
                    Counters.increment(before.b, busy[last], SURVEY_BITS),
                    timed ? growth(before.c, tx, from, last, SURVEY_BITS) : 0);
            before.a = active[last];
            before.b = busy[last];
            before.c = timed ? tx[last] : UNKNOWN;
            from = last + 1;
        }
    }

    /** Bytes times the time for which they waited. */
    private void addQueues(BatchDecoder decoder) {
        TableRows t = decoder.table(Tables.STATION_AC.id());
        if (t.rows == 0) return;
        long[] device = t.column(Tables.StationAc.DEVICE);
        long[] backlog = t.column(Tables.StationAc.BACKLOG_BYTES);
        long[] ts = t.timesUs(decoder.header());
        long endUs = decoder.header().endUs();
        int row = 0;
        for (int run = 0; run < t.runs; run++) {
            long byteUs = 0;
            long at = Math.min(ts[row], endUs);
            for (int end = row + t.runRows[run]; row < end; row++) {
                long until = row + 1 < end ? Math.max(at, Math.min(ts[row + 1], endUs)) : endUs;
                byteUs += backlog[row] * (until - at);
                at = until;
            }
            if (byteUs > 0) radio(device(decoder, device[run])).queued(byteUs);
        }
    }

    /** What a counter has grown by at the end of a run; one that appears with it counts from the run's first row. */
    private static long growth(long before, long[] counter, int from, int last, int bits) {
        return Counters.increment(before == UNKNOWN ? counter[from] : before, counter[last], bits);
    }

    private Last known(Map<Entity, Last> entities, Entity entity, long a, long b, long c) {
        Last last = entities.get(entity);
        if (last == null) {
            last = new Last();
            last.a = a;
            last.b = b;
            last.c = c;
            entities.put(entity, last);
        }
        last.batch = batch;
        return last;
    }

    /** If a second is full: give what happened on each channel, without names and time, and begin the next. */
    public void drain(Consumer<ApSecond> to) {
        if (spanUs < SECOND_US) return;
        Map<Long, RadioSecond> done = radios;
        radios = new HashMap<>();
        Map<Long, Integer> active = new HashMap<>();
        stations.forEach((station, last) -> {
            if (last.active) active.merge(station.device, 1, Integer::sum);
            last.active = false;
        });
        Map<Long, ApSecond> seconds = new TreeMap<>();
        done.forEach((device, radio) -> {
            // Its channel may have no row in this second's batches: a row is sent at each batch, so it is gone.
            if (radio.frequencyMhz == 0) return;
            ApSecond s = seconds.computeIfAbsent(radio.frequencyMhz, f -> new ApSecond());
            s.frequencyMhz = (int) radio.frequencyMhz;
            s.stations = Math.min(MAX_U16, s.stations + radio.left + active.getOrDefault(device, 0));
            s.txKbps = Math.min(MAX_U32, s.txKbps + radio.txBytes * 8000 / spanUs);
            // Interfaces of one radio see the same air, and add to what it sends; the radio's own count includes
            // beacons.
            s.txAirtimePermille = permille(Math.max(s.txAirtimePermille + radio.airtimeUs * 1000 / spanUs,
                    radio.txMs * 1_000_000 / spanUs));
            s.busyPermille =
                    permille(Math.max(s.busyPermille, radio.activeMs == 0 ? 0 : radio.busyMs * 1000 / radio.activeMs));
            s.lossPermille = lossPermille;
            s.backlogBytes = Math.min(MAX_U32, s.backlogBytes + radio.backlogByteUs / spanUs);
        });
        spanUs = 0;
        seconds.values().stream().limit(MAX_CHANNELS).forEach(to);
    }

    private static int permille(long value) {
        return (int) Math.min(1000, value);
    }

    public void write(DataOutput out) throws IOException {
        out.writeLong(spanUs);
        out.writeInt(lossPermille);
        write(out, stations);
        write(out, channels);
        out.writeInt(radios.size());
        for (Map.Entry<Long, RadioSecond> e : radios.entrySet()) {
            out.writeLong(e.getKey());
            e.getValue().write(out);
        }
    }

    private static void write(DataOutput out, Map<Entity, Last> entities) throws IOException {
        out.writeInt(entities.size());
        for (Map.Entry<Entity, Last> e : entities.entrySet()) {
            out.writeLong(e.getKey().id);
            out.writeLong(e.getKey().device);
            out.writeLong(e.getValue().a);
            out.writeLong(e.getValue().b);
            out.writeLong(e.getValue().c);
            out.writeBoolean(e.getValue().active);
        }
    }

    public void read(DataInput in) throws IOException {
        spanUs = in.readLong();
        lossPermille = in.readInt();
        stations = readEntities(in);
        channels = readEntities(in);
        radios = new HashMap<>();
        for (int n = in.readInt(); n > 0; n--) radios.put(in.readLong(), RadioSecond.read(in));
    }

    private static Map<Entity, Last> readEntities(DataInput in) throws IOException {
        Map<Entity, Last> entities = new HashMap<>();
        for (int n = in.readInt(); n > 0; n--) {
            Entity entity = new Entity(in.readLong(), in.readLong());
            Last last = new Last();
            last.a = in.readLong();
            last.b = in.readLong();
            last.c = in.readLong();
            last.active = in.readBoolean();
            entities.put(entity, last);
        }
        return entities;
    }
}
