package oal.stream.process;

import oal.schema.Settings;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;

/** Pairs of batches of one AP in which everything can be predicted: a packet a millisecond, every tenth sent again. */
final class ApTraffic {
    static final long BATCH_US = (long) Settings.BATCH_TICKS * Settings.TICK_US;
    static final int MSS = 1000;

    final String apId;
    long bootId = 5;
    /** Of the program that the AP says it computes. */
    long featureHash;
    long t0Us;

    ApTraffic(String apId, long t0Us) {
        this.apId = apId;
        this.t0Us = t0Us;
    }

    BatchBuilder samples(long seq) {
        BatchBuilder b = header(new BatchBuilder(Topic.SAMPLES, seq, t0Us + seq * BATCH_US));
        for (int tick = 0; tick < Settings.BATCH_TICKS; tick += 3) {
            b.sparse(Tables.STATION_AC, Tables.StationAc.MAC, 7, Tables.StationAc.AC, 2, Tables.StationAc.TICK, tick,
                    Tables.StationAc.BACKLOG_BYTES, 1000 + seq);
        }
        return b;
    }

    BatchBuilder packets(long seq) {
        BatchBuilder b = header(new BatchBuilder(Topic.PACKETS, seq, t0Us + seq * BATCH_US));
        b.flows.add(BatchBuilder.Flow.of(1));
        for (int i = 0; i < BATCH_US / 1000; i++) {
            long n = seq * (BATCH_US / 1000) + i;
            boolean again = n % 10 == 9;
            b.sparse(Tables.PACKET, Tables.Packet.T_US, i * 1000L, Tables.Packet.SEQ,
                    MSS * (again ? n - 1 : n) & 0xFFFFFFFFL,
                    Tables.Packet.PAYLOAD_BYTES, MSS, Tables.Packet.FLAGS, 16);
        }
        return b;
    }

    /** Decisions at these instants, in one batch of a second that begins with {@code t0Us}. */
    BatchBuilder decisions(long seq, long t0Us, Decided... decided) {
        BatchBuilder b = header(new BatchBuilder(Topic.EVENTS, seq, t0Us));
        b.featureHash = featureHash;
        for (Decided d : decided) {
            b.sparse(Tables.DECISION, Tables.Decision.BUNDLE, 77, Tables.Decision.SOURCE, 2, Tables.Decision.VERSION, 3,
                    Tables.Decision.TICK, (d.instantUs - t0Us) / 4000 + 1,
                    Tables.Decision.INSTANT_US, d.instantUs, Tables.Decision.CLASS, d.predicted,
                            Tables.Decision.CONFIDENCE_PERMILLE, 700, Tables.Decision.CONGESTED_PERMILLE, 650,
                    Tables.Decision.LEAF, 4, Tables.Decision.FEATURES_HASH, d.featuresHash,
                            Tables.Decision.FEATURES_MISSING, 1, Tables.Decision.EVAL_NS, 900);
        }
        return b;
    }

    record Decided(long instantUs, int predicted, long featuresHash) {}

    private BatchBuilder header(BatchBuilder b) {
        b.apId = apId;
        b.bootId = bootId;
        return b;
    }
}
