package oal.stream.label;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import oal.schema.Tables;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Counters;
import oal.stream.codec.Names;
import oal.stream.codec.TableRows;

/** Frames that the MAC gave up: growth of each station's tx_failed. A station without a row in a batch is gone. */
final class MacFailures {
    private static final int BITS = Tables.STATION.columns().get(Tables.Station.TX_FAILED).counterBits();
    private static final int OPTIONAL = Tables.STATION.columns().get(Tables.Station.TX_FAILED).optional();

    /** A station on an interface. */
    private record Station(long mac, long device) {}

    private Map<Station, Long> last = new HashMap<>();

    void add(BatchDecoder batch, LabelBuckets buckets, long untilUs) {
        TableRows t = batch.table(Tables.STATION.id());
        Map<Station, Long> now = new HashMap<>();
        if (t.rows > 0) {
            long[] ts = t.timesUs(batch.header());
            long[] failed = t.column(Tables.Station.TX_FAILED);
            long[] mac = t.column(Tables.Station.MAC);
            long[] device = t.column(Tables.Station.DEVICE);
            int at = 0;
            for (int run = 0; run < t.runs; run++) {
                int end = at + t.runRows[run];
                Station station = new Station(mac[run], Names.hash(batch.header().name((int) device[run])));
                if (t.absent(run, OPTIONAL)) { // not known, so what it says next is no growth
                    now.put(station, null);
                    at = end;
                    continue;
                }
                Long before = now.getOrDefault(station, last.get(station));
                long value = before == null ? failed[at] : before;
                for (int i = at; i < end; i++) {
                    if (failed[i] == value) continue;
                    long grown = Counters.increment(value, failed[i], BITS);
                    value = failed[i];
                    if (ts[i] < untilUs) buckets.macLost(buckets.bucketOf(ts[i]), grown);
                }
                now.put(station, value);
                at = end;
            }
        }
        now.values().removeIf(Objects::isNull);
        last = now;
    }

    int size() {
        return last.size();
    }

    void clear() {
        last = new HashMap<>();
    }

    void write(DataOutput out) throws IOException {
        out.writeInt(last.size());
        for (Map.Entry<Station, Long> e : last.entrySet()) {
            out.writeLong(e.getKey().mac);
            out.writeLong(e.getKey().device);
            out.writeLong(e.getValue());
        }
    }

    void read(DataInput in) throws IOException {
        last = new HashMap<>();
        int n = in.readInt();
        for (int i = 0; i < n; i++) last.put(new Station(in.readLong(), in.readLong()), in.readLong());
    }
}
