package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import oal.schema.Topic;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Capture;
import oal.stream.codec.Golden;
import oal.stream.codec.RawBatch;
import oal.stream.decode.AcceptedBatch;
import oal.stream.item.Item;
import oal.stream.operator.PipelineSettings;
import oal.stream.policy.Policies;
import oal.stream.policy.Policy;
import oal.stream.state.StateSettings;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.junit.jupiter.api.Test;

/**
 * Holes, stalls and restarts at every batch of captures of an AP. An item either is that of the whole capture, bit for
 * bit, or it says that it lacked input.
 */
class HolesTest {
    /** Pairs of batches at which something happens. */
    private static final int OFFSETS = 40;
    /** Pairs that follow: 28 s, more than a hole has an effect in these captures. */
    private static final int AFTER = 112;

    /** An item, or what is left of it to compare. */
    private record Told(String values, boolean complete, boolean lackedInput) {}

    private static final class Collected implements ApOutput {
        final TreeMap<Long, Told> of = new TreeMap<>();
        int late;

        @Override
        public void item(ApState ap, String apId, Policy policy, Item item) {
            String values = java.util.Arrays.toString(item.features) + " " + item.classNow + " " + item.classThen + " "
                    + item.lossRatio + " " + item.offeredPkts;
            Told before = of.put(item.tsUs, new Told(values, item.complete, item.lackedInput));
            assertTrue(before == null, "twice: " + item.tsUs);
        }

        @Override
        public void late(AcceptedBatch batch, long lateUs) {
            late++;
        }
    }

    /** The job on one AP's batches; the broker's time of a batch is its end, and the watermark follows at once. */
    private static final class Job {
        final Policies policies = Policies.rwndFair();
        final Collected items = new Collected();
        final ApProcessor processor = new ApProcessor(policies, PipelineSettings.DEFAULT.lateness().toMillis(), items);
        ApState ap = new ApState(policies);
        long nowMs = Long.MIN_VALUE;

        long behindMs;

        void take(AcceptedBatch b, long brokerMs) {
            nowMs = Math.max(nowMs, brokerMs);
            b.kafkaTsMs = brokerMs;
            processor.accept(ap, b, nowMs - 1 - behindMs);
        }

        /** The stream's time, as of other APs. */
        void released(long brokerMs) {
            nowMs = Math.max(nowMs, brokerMs);
            processor.release(ap, nowMs - 1 - behindMs);
        }

        /** What a job that failed has from its checkpoint. */
        ApState copy() throws Exception {
            DataOutputSerializer out = new DataOutputSerializer(1 << 16);
            ap.write(out);
            return ApState.read(new DataInputDeserializer(out.getCopyOfBuffer()), policies, StateSettings.NOW);
        }

        TreeMap<Long, Told> end() {
            processor.release(ap, Long.MAX_VALUE);
            return items.of;
        }
    }

    private static List<AcceptedBatch> batches(String capture) throws Exception {
        Path file = Capture.committed().stream().filter(p -> p.endsWith(capture + ".oalcap")).findFirst().orElseThrow();
        BatchDecoder decoder = BatchDecoder.all();
        List<AcceptedBatch> all = new ArrayList<>();
        for (Golden.Record r : Capture.read(file)) {
            if (r.topic() == Topic.EVENTS) continue;
            decoder.decode(r.topic(), r.data());
            all.add(new AcceptedBatch(new RawBatch(decoder.header().apId, r.topic(), r.data(), 0, 0, all.size()),
                    decoder.header(), decoder.rows()));
            if (all.size() == 2 * (OFFSETS + AFTER)) break;
        }
        return all;
    }

    private static long endMs(AcceptedBatch b) {
        return b.endUs / 1000;
    }

    /** What happens to batches; {@code at}: the first pair that it happens to. */
    private interface Trouble {
        void play(Job job, List<AcceptedBatch> all, int at) throws Exception;
    }

    /** Plays the trouble at every pair of the capture, from what the job remembers there, and 25 s more. */
    private static void everywhere(String capture, String what, Trouble trouble) throws Exception {
        List<AcceptedBatch> all = batches(capture);
        Job whole = new Job();
        for (AcceptedBatch b : all) whole.take(b, endMs(b));
        TreeMap<Long, Told> meant = whole.end();
        assertTrue(meant.values().stream().noneMatch(Told::lackedInput), "nothing is missing of a whole capture");
        Job before = new Job();
        long items = 0;
        long marked = 0;
        long latestUs = 0;
        for (int at = 0; at < OFFSETS; at++) {
            Job job = new Job();
            job.nowMs = before.nowMs;
            job.ap = before.copy();
            trouble.play(job, all.subList(0, 2 * (at + AFTER)), at);
            TreeMap<Long, Told> found = job.end();
            long fromUs = all.get(2 * at).t0Us;
            items += found.size();
            assertTrue(found.size() > AFTER * 2 - 60, found.size() + " items");
            for (var entry : found.entrySet()) {
                long agoUs = entry.getKey() - fromUs;
                String where = what + " from " + at + ", " + agoUs + " us after it";
                compare(where, meant.get(entry.getKey()), entry.getValue());
                if (!entry.getValue().lackedInput()) continue;
                marked++;
                latestUs = Math.max(latestUs, agoUs);
            }
            assertFalse(found.lastEntry().getValue().lackedInput(), what + " from " + at + ": known again in the end");
            for (int i = 2 * at; i < 2 * at + 2; i++) before.take(all.get(i), endMs(all.get(i)));
        }
        System.err.printf("%s, %s: %.1f items marked each time, the latest %.1f s after it%n", capture, what,
                (double) marked / OFFSETS, latestUs / 1e6);
    }

    private static void compare(String what, Told meant, Told told) {
        if (told.lackedInput()) assertFalse(told.complete(), what + ": lacked input, and complete");
        else if (meant == null) assertFalse(told.complete(), what + ": complete, and none without it");
        else if (told.complete()) assertEquals(meant.values(), told.values(), what);
        else assertEquals(features(meant), features(told), what + ": features that do not say that they lacked input");
    }

    private static String features(Told told) {
        return told.values().substring(0, told.values().indexOf(']'));
    }

    /** Batches of these topics do not come; then the job fails, and goes on from its checkpoint. */
    private static Trouble missing(int topics, int length) {
        return (job, all, at) -> {
            for (int i = 2 * at; i < all.size(); i++) {
                AcceptedBatch b = all.get(i);
                if (i < 2 * (at + length) && (topics & 1 << b.topic) != 0) continue;
                job.take(b, endMs(b));
                if (i % 20 == 0) job.ap = job.copy();
            }
        };
    }

    private static final int SAMPLES = 1 << Topic.SAMPLES.ordinal();
    private static final int PACKETS = 1 << Topic.PACKETS.ordinal();

    @Test
    void aBatchOfSamplesIsMissing() throws Exception {
        everywhere("learning", "one batch of samples missing", missing(SAMPLES, 1));
    }

    @Test
    void aBatchOfPacketsIsMissing() throws Exception {
        everywhere("learning2", "one batch of packets missing", missing(PACKETS, 1));
    }

    @Test
    void aSecondOfBothIsMissing() throws Exception {
        everywhere("learning2", "a second of both missing", missing(SAMPLES | PACKETS, 4));
    }

    @Test
    void aHoleRestartsFeatures() throws Exception {
        everywhere("learning", "three seconds of both missing", missing(SAMPLES | PACKETS, 12));
    }

    @Test
    void aLateBatchIsDropped() throws Exception {
        everywhere("learning", "a batch of packets late", (job, all, at) -> {
            AcceptedBatch late = null;
            for (int i = 2 * at; i < all.size(); i++) {
                AcceptedBatch b = all.get(i);
                if (late == null && b.topic == Topic.PACKETS.ordinal()) late = b;
                else job.take(b, endMs(b));
                if (i == 2 * at + 60) job.take(late, endMs(b)); // 7 s later
            }
            assertEquals(1, job.items.late);
        });
    }

    @Test
    void theJobStartsInTheMiddle() throws Exception {
        everywhere("learning2", "the job starts", (job, all, at) -> {
            job.ap = new ApState(job.policies);
            for (int i = 2 * at; i < all.size(); i++) job.take(all.get(i), endMs(all.get(i)));
        });
    }

    /**
     * A broker that stands still for 8 s, while batches wait at the AP: samples then come at once, packets after them.
     * The stream's time stays behind the clock, so that other APs, whose batches come first, make nothing late.
     */
    @Test
    void aStallOfTheBrokerChangesNothing() throws Exception {
        everywhere("learning2", "the broker stands still", (job, all, at) -> {
            int stalled = Math.min(all.size(), 2 * (at + 32));
            long atMs = endMs(all.get(stalled - 1));
            job.behindMs = 60_000;
            for (int topic : new int[] {Topic.SAMPLES.ordinal(), Topic.PACKETS.ordinal()}) {
                for (int i = 2 * at; i < stalled; i++) {
                    AcceptedBatch b = all.get(i);
                    // the broker took the first samples just before
                    if (b.topic == topic) job.take(b, topic == 0 && i < 2 * at + 2 ? endMs(b) : atMs);
                }
                job.released(atMs);
            }
            for (int i = stalled; i < all.size(); i++) job.take(all.get(i), endMs(all.get(i)));
            assertEquals(0, job.items.late);
            TreeMap<Long, Told> found = job.items.of;
            assertTrue(found.values().stream().noneMatch(Told::lackedInput), "nothing was missing");
        });
    }
}
