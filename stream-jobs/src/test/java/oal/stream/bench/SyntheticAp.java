package oal.stream.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import oal.schema.Settings;
import oal.schema.TableSpec;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;

/**
 * Batches of an AP at the operating point: 10 stations, 1 queue, 20 neighbours, 1500 packets/s; rows on change.
 * Only for measuring speed: sizes and rates are those of an AP, values are not meant to make sense together.
 */
public final class SyntheticAp {
    private static final int STATIONS = 10;
    private static final int FLOWS = 20;
    private static final int NEIGHBOURS = 20;
    private static final int PACKETS = 378; // in 252 ms

    private final Random random;
    private final long[][] station = new long[STATIONS][];
    private final long[][] queue = new long[STATIONS][];
    private final long[] channel = row(Tables.CHANNEL);
    private final long[] qdisc = row(Tables.QUEUE);
    private final long[] nextSeq = new long[FLOWS];
    private final long[][] flow = new long[2 * FLOWS][];

    public SyntheticAp(long seed) {
        random = new Random(seed);
        for (int i = 0; i < STATIONS; i++) {
            station[i] = row(Tables.STATION);
            station[i][Tables.Station.MAC] = 0x020000000100L + i;
            station[i][Tables.Station.INTERVAL_TICKS] = 1;
            station[i][Tables.Station.SIGNAL_DBM] = -60;
            station[i][Tables.Station.SIGNAL_AVG_DBM] = -60;
            station[i][Tables.Station.TX_BITRATE_KBPS] = 65_000;
            station[i][Tables.Station.AIRTIME_WEIGHT] = 256;
            queue[i] = row(Tables.STATION_AC);
            queue[i][Tables.StationAc.MAC] = 0x020000000100L + i;
            queue[i][Tables.StationAc.AC] = 2;
        }
        for (int i = 0; i < flow.length; i++) {
            flow[i] = row(Tables.FLOW);
            flow[i][Tables.Flow.FLOW] = i / 2;
            flow[i][Tables.Flow.DIRECTION] = i % 2;
        }
    }

    private static long[] row(TableSpec t) {
        return new long[t.columns().size()];
    }

    private boolean chance(double p) {
        return random.nextDouble() < p;
    }

    public BatchBuilder samples() {
        BatchBuilder b = new BatchBuilder(Topic.SAMPLES, 0, 0);
        for (long[] s : station) {
            for (int tick = 0; tick < Settings.BATCH_TICKS; tick++) {
                if (tick > 0 && !chance(0.5)) continue;
                int sent = random.nextInt(12);
                s[Tables.Station.TICK] = tick;
                s[Tables.Station.TX_BYTES] += 1514L * sent;
                s[Tables.Station.TX_PKTS] += sent;
                s[Tables.Station.RX_BYTES] += 66L * (sent / 2);
                s[Tables.Station.RX_PKTS] += sent / 2;
                s[Tables.Station.TX_RETRIES] += chance(0.3) ? 1 : 0;
                s[Tables.Station.TX_FAILED] += chance(0.01) ? 1 : 0;
                s[Tables.Station.TX_AIRTIME_US] += 200L * sent;
                s[Tables.Station.SIGNAL_DBM] = -60 - random.nextInt(4);
                s[Tables.Station.INACTIVE_MS] = 4L * random.nextInt(3);
                if (chance(0.05)) s[Tables.Station.TX_BITRATE_KBPS] = 6500L * (1 + random.nextInt(20));
                b.row(Tables.STATION, s.clone());
            }
        }
        for (long[] q : queue) {
            for (int tick = 0; tick < Settings.BATCH_TICKS; tick++) {
                if (tick > 0 && !chance(0.5)) continue;
                int sent = random.nextInt(12);
                q[Tables.StationAc.TICK] = tick;
                q[Tables.StationAc.BACKLOG_BYTES] = 1514L * random.nextInt(100);
                q[Tables.StationAc.BACKLOG_PKTS] = q[Tables.StationAc.BACKLOG_BYTES] / 1514;
                q[Tables.StationAc.TX_BYTES] = q[Tables.StationAc.TX_BYTES] + 1514L * sent & 0xFFFFFFFFL;
                q[Tables.StationAc.TX_PKTS] += sent;
                q[Tables.StationAc.MSDU_PKTS] += sent;
                q[Tables.StationAc.DROPS] += chance(0.02) ? 1 : 0;
                b.row(Tables.STATION_AC, q.clone());
            }
        }
        for (int tick = 0; tick < Settings.BATCH_TICKS; tick++) {
            channel[Tables.Channel.FREQUENCY_MHZ] = 2412;
            channel[Tables.Channel.TICK] = tick;
            channel[Tables.Channel.WIDTH_MHZ] = 20;
            channel[Tables.Channel.ACTIVE_MS] += 4;
            channel[Tables.Channel.BUSY_MS] += random.nextInt(5);
            channel[Tables.Channel.TX_MS] += random.nextInt(3);
            channel[Tables.Channel.NOISE_DBM] = -92;
            b.row(Tables.CHANNEL, channel.clone());
            qdisc[Tables.Queue.DEVICE] = 1;
            qdisc[Tables.Queue.HANDLE] = 0x10000;
            qdisc[Tables.Queue.KIND] = 2;
        }
        for (int tick = 0; tick < Settings.BATCH_TICKS; tick++) {
            if (tick > 0 && !chance(0.5)) continue;
            int sent = random.nextInt(30);
            qdisc[Tables.Queue.TICK] = tick;
            qdisc[Tables.Queue.BYTES] += 1514L * sent;
            qdisc[Tables.Queue.PKTS] += sent;
            b.row(Tables.QUEUE, qdisc.clone());
        }
        for (int n = 0; n < NEIGHBOURS; n++) {
            for (int tick = 0; tick < Settings.BATCH_TICKS; tick += 25) {
                b.sparse(Tables.BEACON, Tables.Beacon.BSSID, 0x0A0000000000L + n, Tables.Beacon.TICK, tick,
                        Tables.Beacon.FREQUENCY_MHZ, 2412 + 25L * (n % 3),
                        Tables.Beacon.SIGNAL_DBM, -70 - random.nextInt(10), Tables.Beacon.AGE_MS, random.nextInt(100));
            }
        }
        return b;
    }

    public BatchBuilder packets() {
        BatchBuilder b = new BatchBuilder(Topic.PACKETS, 0, 0);
        for (int i = 0; i < FLOWS; i++) b.flows.add(BatchBuilder.Flow.of(i));
        List<List<long[]>> runs = new ArrayList<>();
        for (int i = 0; i < 2 * FLOWS; i++) runs.add(new ArrayList<>());
        for (int i = 0; i < PACKETS; i++) {
            int f = random.nextInt(FLOWS);
            boolean down = chance(0.67);
            long[] p = row(Tables.PACKET);
            p[Tables.Packet.FLOW] = f;
            p[Tables.Packet.DIRECTION] = down ? 0 : 1;
            p[Tables.Packet.T_US] = 252_000L * i / PACKETS + random.nextInt(600);
            if (down) {
                boolean again = chance(0.03) && nextSeq[f] > 0;
                p[Tables.Packet.SEQ] = again ? nextSeq[f] - 1448 : nextSeq[f];
                p[Tables.Packet.PAYLOAD_BYTES] = 1448;
                if (!again) nextSeq[f] += 1448;
            } else {
                p[Tables.Packet.ACK] = nextSeq[f];
            }
            p[Tables.Packet.WINDOW_RAW] = 501;
            p[Tables.Packet.FLAGS] = 16;
            p[Tables.Packet.TS_VAL] = 1_000_000 + i;
            p[Tables.Packet.TS_ECR] = 2_000_000 + i;
            runs.get(2 * f + (down ? 0 : 1)).add(p);
        }
        for (List<long[]> run : runs) for (long[] p : run) b.row(Tables.PACKET, p);
        for (long[] f : flow) {
            for (int tick = 0; tick < Settings.BATCH_TICKS; tick += 25) {
                f[Tables.Flow.TICK] = tick;
                f[Tables.Flow.SENT_BYTES] += 1448L * random.nextInt(5);
                f[Tables.Flow.SENT_PKTS] += random.nextInt(5);
                f[Tables.Flow.RETRANS_PKTS] += chance(0.05) ? 1 : 0;
                f[Tables.Flow.UNACKED_BYTES] = 1448L * random.nextInt(40);
                f[Tables.Flow.RTT_DOWN_US] = 8000 + random.nextInt(4000);
                f[Tables.Flow.DELIVERY_RATE_KBPS] = random.nextInt(20_000);
                b.row(Tables.FLOW, f.clone());
            }
        }
        if (chance(0.5)) {
            b.sparse(Tables.DROP_EVENT, Tables.DropEvent.CAUSE, 1, Tables.DropEvent.MAC, 0x020000000100L,
                    Tables.DropEvent.QUEUE, 2, Tables.DropEvent.TICK, 7, Tables.DropEvent.COUNT, 1);
        }
        return b;
    }
}
