package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import oal.schema.Topic;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Capture;
import oal.stream.codec.Golden;
import oal.stream.codec.Mutation;
import oal.stream.codec.RawBatch;
import oal.stream.codec.RefusedException;
import oal.stream.decode.AcceptedBatch;
import oal.stream.label.LabelWindow;
import oal.stream.label.Loss;
import oal.stream.neighbour.ApSecond;
import oal.stream.policy.Manifests;
import oal.stream.policy.Policies;
import oal.stream.policy.Policy;
import oal.stream.prediction.Decision;
import oal.stream.prediction.Outcome;
import org.junit.jupiter.api.Test;

/**
 * An AP may send anything that can be decoded: values, times, sequence numbers and incarnations at will. An exception
 * here would stop the job for all APs, at every restart again, so there must be none, and neither endless work nor
 * state without bound.
 */
class HostileApTest {
    private static final int ROUNDS = Integer.getInteger("oal.fuzz", 60_000) / 4;
    /**
     * A batch lets at most this many instants pass: those of the longest time its rows may span, and of the gap before
     * it.
     */
    private static final int MAX_RESULTS_PER_BATCH = 140;
    private static final int MAX_STATE_BYTES = 64 << 20;

    static final class Count implements ApOutput {
        int results;
        int predictions;
        int losses;
        int refused;

        @Override
        public void label(ApState ap, String apId, LabelWindow w) {
            results++;
            assertTrue(w.lossClass() >= 0 && w.lossClass() <= 3);
            assertTrue(w.offeredPkts >= 0 && w.lostPkts >= 0 && w.lostPkts <= w.offeredPkts);
        }

        @Override
        public void loss(ApState ap, String apId, Loss loss) {
            losses++;
            assertTrue(loss.seenUs <= loss.droppedUs && loss.droppedUs <= loss.resentUs && loss.pkts > 0);
        }

        @Override
        public void prediction(ApState ap, Policy policy, Decision decision, Outcome outcome) {
            predictions++;
        }

        @Override
        public void decisionsRefused(int decisions) {
            refused += decisions;
        }

        @Override
        public void second(ApSecond s) {
            assertTrue(s.stations >= 0 && s.stations <= 0xFFFF && s.txKbps >= 0 && s.txKbps <= 0xFFFFFFFFL
                    && s.backlogBytes >= 0 && s.backlogBytes <= 0xFFFFFFFFL);
            for (int permille : new int[] {s.txAirtimePermille, s.busyPermille, s.lossPermille}) {
                assertTrue(permille >= 0 && permille <= 1000);
            }
        }
    }

    /** Ten decisions around the time of the golden batches, of the same AP. */
    private static byte[] decisions(long n) {
        BatchDecoder first = BatchDecoder.all();
        try {
            first.decode(Golden.records("features").get(0).topic(), Golden.records("features").get(0).data());
        } catch (RefusedException e) {
            throw new IllegalStateException(e);
        }
        ApTraffic ap = new ApTraffic(first.header().apId, 0);
        ap.bootId = first.header().bootId;
        long t0 = first.header().t0Us / 100_000 * 100_000 + n * 1_000_000;
        return ap.decisions(n, t0, java.util.stream.LongStream.range(0, 10)
                .mapToObj(i -> new ApTraffic.Decided(t0 + i * 100_000, (int) i % 4, i))
                .toArray(ApTraffic.Decided[]::new)).build();
    }

    @Test
    void nothingBreaks() throws Exception {
        assertNothingBreaks(Policies.rwndFair(), ROUNDS);
    }

    @Test
    void norWithAnotherPolicyBeside() throws Exception {
        assertNothingBreaks(Manifests.with("example"), ROUNDS / 2);
    }

    private static void assertNothingBreaks(Policies policies, int rounds) throws Exception {
        List<Golden.Record> corpus = new ArrayList<>(Golden.records("features"));
        for (var file : Capture.committed()) corpus.addAll(Capture.read(file).subList(0, 60));
        for (long t = 0, n = corpus.size() / 3; t < n; t++) {
            corpus.add((int) (t * 4), new Golden.Record(Topic.EVENTS, decisions(t)));
        }
        Random random = new Random(7);
        Count count = new Count();
        ApProcessor processor = new ApProcessor(policies, 5000, count);
        ApStateSerializer serializer = new ApStateSerializer(policies);
        ApState ap = new ApState(policies);
        BatchDecoder decoder = BatchDecoder.all();
        long watermark = 0;
        int accepted = 0;
        long decisions = 0;
        int at = 0;
        for (int i = 0; i < rounds; i++) {
            // Mostly in order, so that there is state for the damaged ones to hurt.
            at = random.nextInt(20) == 0 ? random.nextInt(corpus.size()) : at + 1;
            if (at >= corpus.size()) {
                at = 0;
                processor.end(ap);
                ap = new ApState(policies);
            }
            Golden.Record r = corpus.get(at);
            byte[] data = random.nextInt(4) != 0 ? r.data() : Mutation.of(r.data(), random, corpus);
            try {
                decoder.decode(r.topic(), data);
            } catch (RefusedException e) {
                continue;
            }
            accepted++;
            AcceptedBatch b = new AcceptedBatch(new RawBatch(decoder.header().apId, r.topic(), data, watermark
                    + random.nextInt(3000), 0, i), decoder.header(), decoder.rows());
            int before = count.results;
            int waited = ap.waiting();
            processor.accept(ap, b, watermark);
            if (random.nextInt(4) == 0) {
                watermark += random.nextInt(8000);
                processor.release(ap, watermark);
            }
            if (r.topic() == Topic.EVENTS) decisions += decoder.table(oal.schema.Tables.DECISION.id()).rows;
            int turns = waited + 1 - ap.waiting();
            assertTrue(count.results - before <= MAX_RESULTS_PER_BATCH * Math.max(1, turns), "round " + i + ": "
                    + (count.results - before) + " results of " + turns + " batches");
            if (i % 500 == 0) {
                ap = serializer.copy(ap); // as a restart would
                var bytes = new org.apache.flink.core.memory.DataOutputSerializer(1 << 16);
                serializer.serialize(ap, bytes);
                assertTrue(bytes.length() < MAX_STATE_BYTES, "state of " + bytes.length() + " bytes");
            }
        }
        processor.end(ap);
        assertEquals(decisions, (long) count.predictions + count.refused,
                "each decision gives a row or is counted as refused");
        assertTrue(count.predictions > 500, count.predictions + " predictions");
        assertTrue(accepted > rounds / 3, accepted + " batches accepted");
        assertTrue(count.results > 200, count.results + " results");
        assertTrue(count.losses > 100, count.losses + " losses");
    }
}
