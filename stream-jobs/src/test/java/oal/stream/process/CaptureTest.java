package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import oal.stream.codec.Capture;
import oal.stream.codec.Golden;
import oal.stream.decode.AcceptedBatch;
import oal.stream.item.Item;
import oal.stream.label.LabelWindow;
import oal.stream.neighbour.ApSecond;
import oal.stream.policy.Policies;
import oal.stream.policy.Policy;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The lab's captures go through without a loss. */
class CaptureTest {
    static Stream<Path> captures() throws Exception {
        return Capture.committed().stream();
    }

    private static final class Totals implements ApOutput {
        long windows;
        long complete;
        long offered;
        long lost;
        long macLost;
        long congestionLost;
        long queueDrops;
        long items;
        long completeItems;
        long seconds;
        long sending;
        final Set<String> channels = new TreeSet<>();
        final long[] classes = new long[4];
        private long nextUs;

        @Override
        public void label(ApState ap, String apId, LabelWindow w) {
            windows++;
            if (w.complete) complete++;
            classes[w.lossClass()]++;
            if (w.startUs < nextUs) return; // sums are over windows that do not overlap
            nextUs = w.startUs + oal.schema.Settings.LABEL_WINDOW_US;
            offered += w.offeredPkts;
            lost += w.lostPkts;
            macLost += w.macLostPkts;
            congestionLost += w.congestionLostPkts;
            queueDrops += w.queueDropPkts;
        }

        @Override
        public void item(ApState ap, String apId, Policy policy, Item item) {
            items++;
            if (item.complete) completeItems++;
        }

        @Override
        public void second(ApSecond second) {
            seconds++;
            channels.add(second.channel());
            if (second.txKbps > 0) sending++;
            assertTrue(second.stations <= 20 && second.txKbps < 1_000_000, second.stations + " stations, "
                    + second.txKbps + " kbit/s");
        }

        @Override
        public void late(AcceptedBatch batch, long lateUs) {
            throw new AssertionError("late: " + batch.seq);
        }
    }

    @ParameterizedTest
    @MethodSource("captures")
    void givesLabelsAndItems(Path capture) throws Exception {
        Totals totals = new Totals();
        BatchFeed feed = new BatchFeed(totals);
        for (Golden.Record r : Capture.read(capture)) feed.add(r.topic(), r.data());
        assertEquals(0, feed.refused);
        assertEquals(1, feed.aps.size());
        ApState ap = feed.aps.values().iterator().next();
        var state = new org.apache.flink.core.memory.DataOutputSerializer(1 << 16);
        new ApStateSerializer(Policies.rwndFair()).serialize(ap, state);
        System.err.printf("%s: state %d bytes; %d windows (%d complete), offered %d, lost %d, MAC %d, congestion %d, "
                + "queue drops %d, classes %s, %d items (%d complete), %d seconds on %s, %d remembered%n",
                capture.getFileName(), state.length(), totals.windows, totals.complete, totals.offered, totals.lost,
                        totals.macLost, totals.congestionLost, totals.queueDrops,
                java.util.Arrays.toString(totals.classes), totals.items, totals.completeItems, totals.seconds,
                        totals.channels, ap.labels.remembered() + ap.first().features.entities());
        assertTrue(totals.windows > 0 && totals.items > 0);
        assertTrue(totals.offered > 0);
        double tenths = totals.windows + 10; // a window is a second long, and there is one every 100 ms
        assertEquals(tenths * 100_000 / (4 * ApTraffic.BATCH_US), totals.seconds, 2, "seconds");
        assertTrue(totals.sending > totals.seconds / 2, totals.sending + " seconds with traffic");
        assertEquals(1, totals.channels.size());
        assertTrue(state.length() < 300_000, "state of an AP: " + state.length() + " bytes");
        assertEquals(0, ap.waiting(), "batches of both topics come in pairs");
        // Where the kernel counted enough drops to compare, loss by sequence space agrees with it.
        if (totals.queueDrops > 100) {
            assertEquals(totals.queueDrops, totals.congestionLost, 0.1 * totals.queueDrops,
                    "congestion-lost by sequence space, and queue drops");
        }
    }
}
