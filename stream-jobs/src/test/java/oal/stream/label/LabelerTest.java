package oal.stream.label;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.ArrayList;
import java.util.List;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.BatchDecoder;
import oal.stream.state.StateSettings;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Times are µs; the labels start at second 1000. */
class LabelerTest {
    private static final long T0 = 1_000_000_000L;
    private static final int MSS = 1448;
    private static final long WAIT_US = Settings.LOSS_WAIT_US;

    private final List<Loss> losses = new ArrayList<>();
    private Labeler labeler = new Labeler(StateSettings.NOW);
    private final BatchDecoder decoder = BatchDecoder.all();

    @BeforeEach
    void start() {
        labeler.clear();
        labeler.restart(T0);
    }

    private static BatchBuilder packets(long t0) {
        BatchBuilder b = new BatchBuilder(Topic.PACKETS, 0, t0);
        for (int i = 0; i < 3; i++) b.flows.add(BatchBuilder.Flow.of(i + 1));
        return b;
    }

    private static void packet(BatchBuilder b, int flow, int direction, long tUs, long seq, long bytes, long... more) {
        long[] p = new long[Tables.PACKET.columns().size()];
        p[Tables.Packet.FLOW] = flow;
        p[Tables.Packet.DIRECTION] = direction;
        p[Tables.Packet.T_US] = tUs;
        p[Tables.Packet.SEQ] = seq & 0xFFFFFFFFL;
        p[Tables.Packet.PAYLOAD_BYTES] = bytes;
        p[Tables.Packet.FLAGS] = 16;
        for (int i = 0; i < more.length; i += 2) p[(int) more[i]] = more[i + 1];
        b.rowAbsent(Tables.PACKET, 3, p); // no timestamps
    }

    private static BatchBuilder samples(long t0, long... tickAndFailed) {
        BatchBuilder b = new BatchBuilder(Topic.SAMPLES, 0, t0);
        for (int i = 0; i < tickAndFailed.length; i += 2) {
            b.sparse(Tables.STATION, Tables.Station.MAC, 7, Tables.Station.TICK, tickAndFailed[i],
                    Tables.Station.TX_FAILED, tickAndFailed[i + 1]);
        }
        return b;
    }

    private void add(BatchBuilder b) throws Exception {
        decoder.decode(b.topic, b.build());
        labeler.add(b.topic, decoder, losses::add);
    }

    /** The window that starts at {@code T0 + ms}. */
    private LabelWindow window(long ms) {
        LabelWindow w = null;
        for (long us = T0; us <= T0 + ms * 1000 + 1_000_000 + WAIT_US; us += 100_000) w = labeler.close(us, true);
        return w;
    }

    @Test
    void countsOfferedAndLost() throws Exception {
        BatchBuilder b = packets(T0);
        for (int i = 0; i < 10; i++) packet(b, 0, 0, 1000 * i, 5000 + i * MSS, MSS);
        packet(b, 0, 0, 50_000, 5000 + 3 * MSS, MSS); // again
        for (int i = 0; i < 5; i++) packet(b, 0, 1, 2000 * i, 77, 100); // uplink payload is not offered to the air
        add(b);
        LabelWindow w = window(0);
        assertEquals(T0, w.startUs);
        assertEquals(11, w.offeredPkts);
        assertEquals(11L * MSS, w.offeredBytes);
        assertEquals(1, w.lostPkts);
        assertEquals(MSS, w.lostBytes);
        assertEquals(1, w.flows);
        assertEquals(1f / 11, w.lossRatio());
        assertEquals(2, w.lossClass(), "9 % is Poor");
        assertTrue(w.complete);
    }

    @Test
    void keepalivesAndProbesAreNoLoss() throws Exception {
        BatchBuilder b = packets(T0);
        packet(b, 0, 0, 0, 1000, 100);
        packet(b, 0, 0, 1000, 1099, 1); // keepalive with a byte of garbage
        packet(b, 0, 0, 2000, 1099, 0); // keepalive without
        packet(b, 0, 0, 3000, 1100, 1); // window probe: one new byte
        packet(b, 0, 0, 4000, 1100, 500); // sent again with what follows
        add(b);
        LabelWindow w = window(0);
        assertEquals(0, w.lostPkts);
        assertEquals(3, w.offeredPkts);
    }

    @Test
    void reorderedArrivalsAreNoLoss() throws Exception {
        BatchBuilder b = packets(T0);
        packet(b, 0, 0, 0, 1000, 100);
        packet(b, 0, 0, 1000, 1200, 100);
        packet(b, 0, 0, 2000, 1100, 100);
        add(b);
        assertEquals(0, window(0).lostPkts);
    }

    @Test
    void aggregatesCountAsTheirSegments() throws Exception {
        BatchBuilder b = packets(T0);
        packet(b, 0, 1, 0, 0, 0, Tables.Packet.FLAGS, 2, Tables.Packet.SYN_OPTIONS, 2, Tables.Packet.MSS_BYTES, 1000);
        packet(b, 0, 0, 1, 99, 0, Tables.Packet.FLAGS, 18, Tables.Packet.SYN_OPTIONS, 2, Tables.Packet.MSS_BYTES, 1400);
        packet(b, 0, 0, 1000, 100, 44_000);
        packet(b, 0, 0, 2000, 100, 2_500);
        packet(b, 1, 0, 3000, 0, 2 * 1460); // SYN missed
        add(b);
        LabelWindow w = window(0);
        assertEquals(44 + 3 + 2, w.offeredPkts);
        assertEquals(3, w.lostPkts);
        assertEquals(2, w.flows);
    }

    @Test
    void failuresThatAppearHaveNotGrownByTheirValue() throws Exception {
        long absent = 1L << Tables.STATION.columns().get(Tables.Station.TX_FAILED).optional();
        BatchBuilder b = new BatchBuilder(Topic.SAMPLES, 0, T0).sparseAbsent(Tables.STATION, absent,
                Tables.Station.MAC, 7);
        b.sparse(Tables.STATION, Tables.Station.MAC, 7, Tables.Station.TICK, 5, Tables.Station.TX_FAILED, 500);
        b.sparse(Tables.STATION, Tables.Station.MAC, 7, Tables.Station.TICK, 9, Tables.Station.TX_FAILED, 503);
        b.sparseAbsent(Tables.STATION, absent, Tables.Station.MAC, 7, Tables.Station.TICK, 12);
        add(b);
        add(samples(T0 + 252_000, 0, 900, 4, 901));
        assertEquals(3 + 1, window(0).macLostPkts);
    }

    @Test
    void aFlowIsFollowedAcrossBatchesAndDictionaries() throws Exception {
        BatchBuilder b = packets(T0);
        packet(b, 2, 0, 0, -500, 1000); // wraps
        add(b);
        BatchBuilder c = new BatchBuilder(Topic.PACKETS, 1, T0 + 252_000);
        c.flows.add(BatchBuilder.Flow.of(3)); // the same flow under another index
        packet(c, 0, 0, 0, -500, 1000);
        add(c);
        assertEquals(1, window(0).lostPkts);
    }

    @Test
    void macFailuresAreNotCongestion() throws Exception {
        add(samples(T0, 0, 100, 10, 100));
        BatchBuilder b = packets(T0);
        for (int i = 0; i < 100; i++) packet(b, 0, 0, i, i * MSS, MSS);
        for (int i = 0; i < 20; i++) packet(b, 0, 0, 200 + i, i * MSS, MSS);
        add(b);
        add(samples(T0 + 252_000, 0, 100, 20, 105, 30, 108));
        LabelWindow w = window(0);
        assertEquals(20, w.lostPkts);
        assertEquals(8, w.macLostPkts);
        assertEquals(12, w.congestionResentPkts());
        assertEquals(100, w.lossPermilleResent());
    }

    @Test
    void macCountersWrapAndRestartAndStationsLeave() throws Exception {
        add(samples(T0, 0, 0xFFFFFFF0L, 5, 4)); // wrapped: 20
        assertEquals(20, window(0).macLostPkts);
        start();
        add(samples(T0, 0, 500, 5, 3)); // restarted: 3
        assertEquals(3, window(0).macLostPkts);
        start();
        add(samples(T0, 0, 500));
        add(new BatchBuilder(Topic.SAMPLES, 1, T0 + 252_000)); // it left
        add(samples(T0 + 504_000, 0, 900)); // and came back: its first row gives no increment
        assertEquals(0, window(0).macLostPkts);
    }

    @Test
    void queueDropsAreTheirOwnCount() throws Exception {
        BatchBuilder b = packets(T0);
        for (int cause = 1; cause <= 4; cause++) {
            b.sparse(Tables.DROP_EVENT, Tables.DropEvent.CAUSE, cause, Tables.DropEvent.TICK, 3, Tables.DropEvent.COUNT,
                    10L * cause);
        }
        add(b);
        assertEquals(60, window(0).queueDropPkts, "cause 4 is the MAC's");
    }

    @Test
    void windowsSlideByTheDecisionInterval() throws Exception {
        BatchBuilder b = packets(T0);
        packet(b, 0, 0, 99_999, 0, 10);
        packet(b, 0, 0, 100_000, 10, 10); // belongs to the second bucket
        add(b);
        assertEquals(2, window(0).offeredPkts);
        LabelWindow next = labeler.close(T0 + 1_100_000 + WAIT_US, true);
        assertEquals(1, next.offeredPkts);
        assertEquals(T0 + 100_000, next.startUs);
        assertEquals(1, next.flows);
        next = labeler.close(T0 + 1_200_000 + WAIT_US, true);
        assertEquals(0, next.offeredPkts);
        assertEquals(0, next.flows);
        assertEquals(0f, next.lossRatio());
        assertEquals(0, next.lossClass());
    }

    @Test
    void aWindowWithAHoleIsIncompleteAndOneBeforeTheStartIsNotWhole() {
        int wait = (int) (WAIT_US / 100_000);
        for (int i = 0; i <= 30 + 2 * wait; i++) {
            LabelWindow w = labeler.close(T0 + 100_000L * i, i != 15 + wait);
            int last = i - wait;
            assertEquals(last >= 10, w.whole, "window that ends with bucket " + last);
            // A hole after it may hide that something of it was sent again.
            assertEquals(last >= 10 && (last < 15 || last >= 25 + wait), w.complete, "window that ends with bucket "
                    + last);
        }
    }

    @Test
    void rowsFarAfterTheirBatchAreNotCounted() throws Exception {
        BatchBuilder b = packets(T0);
        packet(b, 0, 0, 0, 0, 10);
        packet(b, 0, 0, 1L << 39, 10, 10);
        add(b);
        assertEquals(1, window(0).offeredPkts);
    }

    @Test
    void idleFlowsAreForgottenAndTheirNumberIsBounded() throws Exception {
        for (int i = 0; i < 12; i++) {
            BatchBuilder b = new BatchBuilder(Topic.PACKETS, i, T0 + i);
            for (int f = 0; f < 1000; f++) {
                b.flows.add(BatchBuilder.Flow.of(i * 1000 + f));
                packet(b, f, 0, f, 0, 10);
            }
            add(b);
            assertTrue(labeler.remembered() <= DownlinkFlows.MAX_FLOWS);
        }
        assertTrue(labeler.remembered() > DownlinkFlows.MAX_FLOWS / 2);
        BatchBuilder later = packets(T0 + DownlinkFlows.EXPIRY_US + 60_000_000);
        packet(later, 0, 0, 0, 0, 10);
        add(later);
        assertEquals(1, labeler.remembered());
    }

    @Test
    void stateSurvivesSerialisation() throws Exception {
        BatchBuilder b = packets(T0);
        for (int i = 0; i < 10; i++) packet(b, 0, 0, 1000 * i, i * 2 * MSS, MSS); // with holes
        add(b);
        add(samples(T0, 0, 10));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        labeler.write(new DataOutputStream(bytes));
        labeler = new Labeler(StateSettings.NOW);
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes.toByteArray()));
        labeler.read(in, StateSettings.NOW);
        assertEquals(0, in.available());
        BatchBuilder c = packets(T0 + 252_000);
        packet(c, 0, 0, 0, MSS, MSS); // fills a hole
        packet(c, 0, 0, 1, 0, MSS); // seen before
        add(c);
        add(samples(T0 + 252_000, 0, 12));
        LabelWindow w = window(0);
        assertEquals(12, w.offeredPkts);
        assertEquals(1, w.lostPkts);
        assertEquals(2, w.macLostPkts);
    }

    @Test
    void classBoundsAreExact() {
        LabelWindow w = new LabelWindow();
        w.offeredPkts = 1000;
        int[] lost = {0, 9, 10, 49, 50, 119, 120, 1000};
        int[] want = {0, 0, 1, 1, 2, 2, 3, 3};
        for (int i = 0; i < lost.length; i++) {
            w.congestionLostPkts = lost[i];
            assertEquals(want[i], w.lossClass(), lost[i] + " of 1000");
        }
        w.congestionLostPkts = 1200; // dropped in it and offered before it
        assertEquals(1, w.lossRatio());
        assertEquals(3, w.lossClass());
        w.lostPkts = 1000;
        w.macLostPkts = 2000;
        assertEquals(0, w.congestionResentPkts());
    }
}
