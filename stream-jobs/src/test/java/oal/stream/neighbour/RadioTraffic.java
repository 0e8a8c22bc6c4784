package oal.stream.neighbour;

import oal.schema.Settings;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;

/** Batches of samples of an access point with one radio, in which everything can be predicted. */
public final class RadioTraffic {
    public static final long BATCH_US = (long) Settings.BATCH_TICKS * Settings.TICK_US;

    private final String apId;
    private final long t0Us;
    public String site = "lab";
    private static final long AIRTIME_ABSENT =
            1L << Tables.STATION.columns().get(Tables.Station.TX_AIRTIME_US).optional();

    public long frequencyMhz = 5180;
    /** Sent to each station in a batch. */
    public long bytesPerBatch = 31_500;
    public int stations = 2;
    public boolean countsAirtime = true;
    private long sent = 1_000_000;

    public RadioTraffic(String apId, long t0Us) {
        this.apId = apId;
        this.t0Us = t0Us;
    }

    /**
     * Batch number {@code seq}: half of the stations' bytes at its middle; the air a quarter busy, a tenth of it by
     * each station.
     */
    public BatchBuilder samples(long seq) {
        BatchBuilder b = new BatchBuilder(Topic.SAMPLES, seq, t0Us + seq * BATCH_US);
        b.apId = apId;
        b.site = site;
        for (int s = 0; s < stations; s++) {
            for (int half = 0; half < 2; half++) {
                b.sparseAbsent(Tables.STATION, countsAirtime ? 0 : AIRTIME_ABSENT, Tables.Station.MAC, s + 1L,
                        Tables.Station.TICK, 31L * half, Tables.Station.TX_BYTES, sent + bytesPerBatch * half,
                        Tables.Station.TX_AIRTIME_US, countsAirtime ? (2 * seq + half) * BATCH_US / 20 : 0);
            }
        }
        sent += bytesPerBatch;
        for (int s = 0; s < stations; s++) {
            for (int half = 0; half < 2; half++) {
                b.sparse(Tables.STATION_AC, Tables.StationAc.MAC, s + 1L, Tables.StationAc.AC, 2, Tables.StationAc.TICK,
                        21L * half, Tables.StationAc.BACKLOG_BYTES, 30_000L * half);
            }
        }
        for (int half = 0; half < 2; half++) {
            b.sparse(Tables.CHANNEL, Tables.Channel.FREQUENCY_MHZ, frequencyMhz, Tables.Channel.TICK, 31L * half,
                    Tables.Channel.ACTIVE_MS, (2 * seq + half) * 128,
                    Tables.Channel.BUSY_MS, (2 * seq + half) * 32);
        }
        return b;
    }

    /** Nothing but the header: the other half of a pair. */
    public BatchBuilder packets(long seq) {
        BatchBuilder b = new BatchBuilder(Topic.PACKETS, seq, t0Us + seq * BATCH_US);
        b.apId = apId;
        b.site = site;
        return b;
    }
}
