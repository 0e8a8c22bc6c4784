package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import oal.schema.Topic;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Capture;
import oal.stream.codec.Golden;
import oal.stream.codec.RawBatch;
import oal.stream.item.Item;
import oal.stream.label.LabelWindow;
import oal.stream.prediction.Decision;
import oal.stream.prediction.Outcome;

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
            congestionLost += w.congestionLostPkts();
            queueDrops += w.queueDropPkts;
        }

        @Override
        public void item(ApState ap, String apId, Item item) {
            items++;
            if (item.complete) completeItems++;
        }

        @Override
        public void prediction(ApState ap, Decision decision, Outcome outcome) {}

        @Override
        public void decisionsRefused(int decisions) {}

        @Override
        public void late(AcceptedBatch batch, long lateUs) {
            throw new AssertionError("late: " + batch.seq);
        }
    }

    @ParameterizedTest
    @MethodSource("captures")
    void givesLabelsAndItems(Path capture) throws Exception {
        Totals totals = new Totals();
        ApProcessor processor = new ApProcessor(ApStateSerializer.PROGRAM, 5000, totals);
        ApState ap = new ApState(ApStateSerializer.PROGRAM);
        BatchDecoder decoder = BatchDecoder.all();
        List<AcceptedBatch> batches = new ArrayList<>();
        for (Golden.Record r : Capture.read(capture)) {
            decoder.decode(r.topic(), r.data()); // refuses none
            if (r.topic() == Topic.EVENTS) continue;
            batches.add(new AcceptedBatch(new RawBatch(decoder.header().apId, r.topic(), r.data(), decoder.header().endUs() / 1000, 0, 0), decoder.header(), decoder.rows()));
        }
        batches.sort(Comparator.comparingLong(b -> b.endUs));
        long spanUs = batches.get(batches.size() - 1).endUs - batches.get(0).t0Us;
        for (AcceptedBatch b : batches) processor.accept(ap, b, Long.MIN_VALUE);
        var state = new org.apache.flink.core.memory.DataOutputSerializer(1 << 16);
        new ApStateSerializer().serialize(ap, state);
        System.err.printf("%s: state %d bytes; %.1f s, %d windows (%d complete), offered %d, lost %d, MAC %d, congestion %d, queue drops %d, classes %s, %d items (%d complete), %d remembered%n",
                capture.getFileName(), state.length(), spanUs / 1e6, totals.windows, totals.complete, totals.offered, totals.lost, totals.macLost, totals.congestionLost, totals.queueDrops,
                java.util.Arrays.toString(totals.classes), totals.items, totals.completeItems, ap.labels.remembered() + ap.features.entities());
        assertTrue(totals.windows > 0 && totals.items > 0);
        assertTrue(totals.offered > 0);
        assertTrue(state.length() < 300_000, "state of an AP: " + state.length() + " bytes");
        assertEquals(0, ap.waiting(), "batches of both topics come in pairs");
        // Where the kernel counted enough drops to compare, loss by sequence space agrees with it.
        if (totals.queueDrops > 100) {
            assertEquals(totals.queueDrops, totals.congestionLost, 0.1 * totals.queueDrops, "congestion-lost by sequence space, and queue drops");
        }
    }
}
