package oal.stream.label;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.BatchDecoder;
import oal.stream.state.StateSettings;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** When and where a packet was dropped. Times are ms after the start; a tick is 4 ms. */
class LossCauseTest {
    private static final long T0 = 1_000_000_000L;
    private static final int MSS = 1448;
    /** Of flow 1. */
    private static final long MAC = BatchBuilder.Flow.of(1).stationMac();

    private final Labeler labeler = new Labeler(StateSettings.NOW);
    private final BatchDecoder decoder = BatchDecoder.all();
    private final List<Loss> losses = new ArrayList<>();
    private BatchBuilder samples;
    private BatchBuilder packets;

    @BeforeEach
    void start() {
        labeler.clear();
        labeler.restart(T0);
        samples = new BatchBuilder(Topic.SAMPLES, 0, T0);
        packets = new BatchBuilder(Topic.PACKETS, 0, T0);
        packets.flows.add(BatchBuilder.Flow.of(1));
    }

    /** The station's MAC counts retries; its queue's own counters count packets, or do not. */
    private void station(long mac, long retries, long txqPkts) {
        samples.sparse(Tables.STATION, Tables.Station.MAC, mac, Tables.Station.TX_RETRIES, retries);
        samples.sparse(Tables.STATION_AC, Tables.StationAc.MAC, mac, Tables.StationAc.AC, 2, Tables.StationAc.TX_PKTS,
                txqPkts);
    }

    private void qdisc(String kind) {
        samples.names = List.of("wlan0", kind);
        samples.sparse(Tables.QUEUE, Tables.Queue.HANDLE, 0x10000, Tables.Queue.KIND, 1);
    }

    private void drop(int cause, long mac, long queue, long ms, long count) {
        packets.sparse(Tables.DROP_EVENT, Tables.DropEvent.CAUSE, cause, Tables.DropEvent.MAC, mac,
                Tables.DropEvent.QUEUE, queue, Tables.DropEvent.TICK, ms / 4, Tables.DropEvent.COUNT, count);
    }

    private void packet(int flow, int direction, double ms, long seq, long ack, long bytes) {
        long[] p = new long[Tables.PACKET.columns().size()];
        p[Tables.Packet.FLOW] = flow;
        p[Tables.Packet.DIRECTION] = direction;
        p[Tables.Packet.T_US] = (long) (ms * 1000);
        p[Tables.Packet.SEQ] = seq;
        p[Tables.Packet.ACK] = ack;
        p[Tables.Packet.PAYLOAD_BYTES] = bytes;
        p[Tables.Packet.FLAGS] = 16;
        packets.rowAbsent(Tables.PACKET, 3, p);
    }

    private void down(double ms, int segment) {
        packet(0, 0, ms, (long) segment * MSS, 1, MSS);
    }

    private void ack(double ms, int segments) {
        packet(0, 1, ms, 1, (long) segments * MSS, 0);
    }

    private Loss only() throws Exception {
        all();
        assertEquals(1, losses.size());
        return losses.get(0);
    }

    private void all() throws Exception {
        for (BatchBuilder b : List.of(samples, packets)) {
            decoder.decode(b.topic, b.build());
            labeler.add(b.topic, decoder, losses::add);
        }
    }

    private static void assertDropped(double ms, Loss loss) {
        assertEquals(T0 + (long) (ms * 1000), loss.droppedUs);
    }

    private void assertCounted(long congestion, long air, long elsewhere) {
        LabelWindow w = null;
        for (int i = 0; i <= 30; i++) w = labeler.close(T0 + 100_000L * i, true);
        assertEquals(List.of(congestion, air, elsewhere), List.of(w.congestionLostPkts, w.airLostPkts,
                w.elsewhereLostPkts));
        assertEquals(1, w.lostPkts, "by the definition of before");
    }

    @Test
    void theStationsOwnQueueDroppedIt() throws Exception {
        station(MAC, 5, 1000);
        down(1, 0);
        drop(1, MAC, 2, 60, 1);
        drop(4, MAC + 1, 0, 20, 1); // another station's
        down(90, 0);
        Loss loss = only();
        assertEquals(Loss.QUEUE, loss.cause);
        assertEquals(Loss.TXQ, loss.queueCounter);
        assertEquals(List.of(1L, 0L), List.of(loss.queueDropPkts, loss.macFailedPkts));
        assertEquals(Loss.BY_COUNTER, loss.stampedBy);
        assertDropped(60, loss);
        assertCounted(1, 0, 0);
        assertEquals(T0 + 60_000, labeler.firstDropUs(T0, T0 + 1_000_000));
        assertEquals(T0 + 60_000, labeler.lastDropUs(T0, T0 + 1_000_000));
        assertEquals(0, labeler.lastDropUs(T0 + 100_000, T0 + 1_000_000));
    }

    @Test
    void theAirLostIt() throws Exception {
        station(MAC, 5, 1000);
        down(1, 0);
        drop(1, MAC + 1, 2, 12, 1);
        drop(4, MAC, 0, 40, 1);
        down(90, 0);
        Loss loss = only();
        assertEquals(Loss.AIR, loss.cause);
        assertDropped(40, loss);
        assertCounted(0, 1, 0);
    }

    /** A frame fails some attempts after it left the queue: here both left at once, and nothing tells them apart. */
    @Test
    void eitherMayHaveBeen() throws Exception {
        station(MAC, 5, 1000);
        down(1, 0);
        drop(1, MAC, 2, 40, 1);
        drop(4, MAC, 0, 60, 1);
        down(90, 0);
        Loss loss = only();
        assertEquals(Loss.BOTH, loss.cause);
        assertEquals(List.of(1L, 1L), List.of(loss.queueDropPkts, loss.macFailedPkts));
        assertDropped(40, loss);
        assertCounted(1, 0, 0);
    }

    /** Packets leave a queue in order: of two that are missed the first is what left it first. */
    @Test
    void whatLeftTheQueueFirstIsMissedFirst() throws Exception {
        station(MAC, 5, 1000);
        down(1, 0);
        down(2, 1);
        drop(1, MAC, 2, 56, 1); // before the failure is counted, and after its frame was first on the air
        drop(4, MAC, 0, 60, 1);
        down(90, 0);
        down(91, 1);
        all();
        assertEquals(List.of(Loss.AIR, Loss.QUEUE), List.of(losses.get(0).cause, losses.get(1).cause));
        assertDropped(60, losses.get(0));
        assertDropped(56, losses.get(1));
        assertEquals(List.of(1L, 1L), List.of(losses.get(1).queueDropPkts, losses.get(1).macFailedPkts));
    }

    @Test
    void aFailureLongAfterADropIsOfAPacketThatLeftLater() throws Exception {
        station(MAC, 5, 1000);
        down(1, 0);
        down(2, 1);
        drop(1, MAC, 2, 20, 1);
        drop(4, MAC, 0, 60, 1);
        down(90, 0);
        down(91, 1);
        all();
        assertEquals(List.of(Loss.QUEUE, Loss.AIR), List.of(losses.get(0).cause, losses.get(1).cause));
    }

    /** A queue that is full drops what comes: a step that is not of that time is of another packet. */
    @Test
    void aTailDropIsAtFirstSight() throws Exception {
        station(MAC, 5, 0);
        qdisc("pfifo");
        drop(3, 0, 0x10000, 4, 1);
        drop(3, 0, 0x10000, 60, 3);
        drop(4, MAC, 0, 60, 1);
        down(1, 0);
        down(30, 1);
        down(50, 0);
        down(91, 1);
        all();
        assertEquals(2, losses.size());
        assertEquals(List.of(Loss.QUEUE, Loss.AIR), List.of(losses.get(0).cause, losses.get(1).cause));
        assertEquals(Loss.QDISC, losses.get(0).queueCounter);
        assertDropped(4, losses.get(0));
        assertDropped(60, losses.get(1));
    }

    /** With another kind of queue a packet may wait before it is dropped. */
    @Test
    void otherQueuesDropLater() throws Exception {
        station(MAC, 5, 0);
        qdisc("fq_codel");
        drop(3, 0, 0x10000, 60, 1);
        down(1, 0);
        down(90, 0);
        Loss loss = only();
        assertEquals(Loss.QUEUE, loss.cause);
        assertDropped(60, loss);
    }

    /** Each packet that a counter counted explains one loss. */
    @Test
    void aStepExplainsAsManyLossesAsItCounts() throws Exception {
        station(MAC, 5, 1000);
        for (int i = 0; i < 3; i++) down(1 + i * 0.1, i);
        drop(1, MAC, 2, 20, 2);
        drop(1, MAC, 2, 60, 1);
        for (int i = 0; i < 3; i++) down(90 + i * 0.1, i);
        all();
        assertDropped(20, losses.get(0));
        assertDropped(20, losses.get(1));
        assertDropped(60, losses.get(2));
    }

    /** Counters that a driver does not fill read 0, and say nothing. */
    @Test
    void whatIsNotCountedIsUnknown() throws Exception {
        station(MAC, 0, 0);
        down(1, 0);
        down(90, 0);
        Loss loss = only();
        assertEquals(Loss.UNKNOWN, loss.cause);
        assertEquals(Loss.NO_QUEUE_COUNTER, loss.queueCounter);
        assertEquals(List.of(Loss.ABSENT, Loss.ABSENT), List.of(loss.queueDropPkts, loss.macFailedPkts));
        assertEquals(Loss.BY_FIRST_SIGHT, loss.stampedBy);
        assertDropped(1, loss);
        assertTrue(loss.congestion(), "as by the definition of before: nothing says that it was not");
        assertCounted(1, 0, 0);
    }

    @Test
    void withoutQueueCountersTheAirsShareIsKnown() throws Exception {
        station(MAC, 5, 0);
        down(1, 0);
        drop(4, MAC, 0, 40, 1);
        down(90, 0);
        Loss loss = only();
        assertEquals(Loss.AIR, loss.cause);
        assertEquals(Loss.ABSENT, loss.queueDropPkts);
    }

    @Test
    void countersThatStandStillSayThatItWasNotHere() throws Exception {
        station(MAC, 5, 1000);
        drop(1, MAC, 2, 120, 1); // later
        down(1, 0);
        down(90, 0);
        Loss loss = only();
        assertEquals(Loss.UNKNOWN, loss.cause);
        assertEquals(0, loss.queueDropPkts);
        assertCounted(0, 0, 1);
    }

    @Test
    void whatHadArrivedIsNoLoss() throws Exception {
        station(MAC, 5, 1000);
        down(1, 0);
        down(2, 1);
        drop(1, MAC, 2, 20, 1);
        ack(40, 1); // the first has arrived
        down(90, 0);
        down(91, 1);
        Loss loss = only();
        assertEquals(MSS, loss.seq);
    }

    /** Lost again: the second loss is of the time after the first repetition. */
    @Test
    void aRepetitionCanBeLostToo() throws Exception {
        station(MAC, 5, 1000);
        down(1, 0);
        drop(1, MAC, 2, 20, 1);
        down(50, 0);
        drop(1, MAC, 2, 60, 1);
        down(90, 0);
        all();
        assertEquals(2, losses.size());
        assertDropped(20, losses.get(0));
        assertDropped(60, losses.get(1));
        assertEquals(T0 + 50_000, losses.get(1).seenUs);
    }

    /** The label is of the time of the drop, not of the repetition. */
    @Test
    void aLossCountsWhereItWasDropped() throws Exception {
        station(MAC, 5, 1000);
        down(1, 0);
        drop(1, MAC, 2, 20, 1);
        all();
        packets = new BatchBuilder(Topic.PACKETS, 5, T0 + 1_260_000);
        packets.flows.add(BatchBuilder.Flow.of(1));
        samples = new BatchBuilder(Topic.SAMPLES, 5, T0 + 1_260_000);
        down(1, 0); // 1.26 s later
        all();
        assertEquals(1, losses.size());
        assertDropped(20, losses.get(0));
        for (int i = 0; i <= 60; i++) {
            LabelWindow w = labeler.close(T0 + 100_000L * i, true);
            if (!w.whole) continue;
            assertEquals(w.startUs == T0 ? 1 : 0, w.congestionLostPkts, "window from " + (w.startUs - T0));
            boolean resent = w.startUs <= T0 + 1_261_000 && w.startUs + 1_000_000 > T0 + 1_261_000;
            assertEquals(resent ? 1 : 0, w.lostPkts, "window from " + (w.startUs - T0));
        }
    }
}
