package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import oal.stream.codec.BatchBuilder;
import oal.stream.policy.Policies;
import oal.stream.prediction.Outcome;
import oal.stream.prediction.PredictionJoin;
import oal.stream.process.ApTraffic.Decided;
import oal.stream.state.StateSettings;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Decisions meet the items of their instants: rows, timers and state left behind. */
class ApPredictionTest extends ApHarness {
    private static final long STEP_US = 100_000;

    /** One decision at each of the instants number {@code from} to {@code to} − 1, in batches of ten. */
    private void decide(int from, int to) throws Exception {
        for (int i = from; i < to; i += 10) {
            long t0 = T0_US + i * STEP_US;
            send(ap.decisions(i / 10, t0, IntStream.range(i, Math.min(to, i + 10))
                    .mapToObj(k -> new Decided(T0_US + k * STEP_US, k % 4, k)).toArray(Decided[]::new)), t0 / 1000
                    + 1000);
        }
    }

    private List<Map<String, String>> predictionsInOrder() throws Exception {
        return rows("prediction").stream().sorted((a, b) -> Long.compare(ts(a), ts(b))).toList();
    }

    private static long[] features(Map<String, String> item) {
        String list = item.get("features");
        return LongStream.of(java.util.Arrays.stream(list.substring(1, list.length() - 1).split(", "))
                .mapToLong(Long::parseLong).toArray()).toArray();
    }

    @Test
    void aPredictionIsTheDecisionWithTheItemOfItsInstant() throws Exception {
        decide(10, 40); // instants of 1.0 to 3.9 s
        sendPairs(0, 40);
        Map<Long, Map<String, String>> items = rows("item").stream().collect(Collectors.toMap(ApHarness::ts, i -> i));
        List<Map<String, String>> got = rows("prediction");
        assertEquals(30, got.size());
        int complete = 0;
        for (int k = 0; k < got.size(); k++) {
            Map<String, String> p = got.get(k);
            Map<String, String> item = items.get(ts(p));
            assertEquals(T0_US + (10 + k) * STEP_US, ts(p));
            assertEquals("ap-1 lab 5 77 online 3 700 650 4 1 900", String.join(" ", p.get("ap_id"), p.get("site"),
                    p.get("boot_id"), p.get("bundle"), p.get("source"), p.get("version"),
                    p.get("confidence_permille"), p.get("congested_permille"), p.get("leaf"), p.get("features_missing"),
                            p.get("eval_ns")));
            assertEquals(List.of("Good", "Acceptable", "Poor", "Bad").get((10 + k) % 4), p.get("predicted"));
            assertEquals(item.get("class"), p.get("class"));
            assertEquals(item.get("class_now"), p.get("class_now"));
            assertEquals(item.get("complete"), p.get("complete"));
            assertEquals("unknown", p.get("features_match"), "the AP said nothing of its feature program");
            if (p.get("complete").equals("1")) complete++;
        }
        assertTrue(complete > 20, complete + " complete");
    }

    @Test
    void itMakesNoDifferenceWhoComesFirst() throws Exception {
        decide(10, 40);
        sendPairs(0, 40);
        List<Map<String, String>> want = rows("prediction");
        close();
        open();
        sendPairs(0, 40);
        assertEquals(List.of(), rows("prediction"), "an item without a decision gives none");
        decide(10, 40);
        assertEquals(want, rows("prediction"));
        close();
        open();
        sendPairs(0, 10); // items come out while decisions come in
        decide(10, 30);
        sendPairs(10, 15);
        decide(30, 40);
        sendPairs(15, 40);
        assertEquals(want, predictionsInOrder());
    }

    @Test
    void featuresAreCompared() throws Exception {
        sendPairs(0, 40);
        List<Map<String, String>> items = rows("item").subList(10, 20);
        List<Decided> decided = new ArrayList<>();
        for (int i = 0; i < items.size(); i++) {
            decided.add(new Decided(ts(items.get(i)), 0, Outcome.hash(features(items.get(i))) + (i == 3 ? 1 : 0)));
        }
        ap.featureHash = Policies.rwndFair().first().featureHash;
        send(ap.decisions(0, decided.get(0).instantUs(), decided.toArray(Decided[]::new)), brokerMs(40));
        List<String> match = rows("prediction").stream().map(p -> p.get("features_match")).toList();
        assertEquals(10, match.size());
        for (int i = 0; i < 10; i++) assertEquals(i == 3 ? "differ" : "same", match.get(i));
    }

    @Test
    void theHashIsFnv1aOverBigEndianValuesWithoutTheHighestBit() {
        assertEquals(0xcbf29ce484222325L & Long.MAX_VALUE, Outcome.hash(new long[0]));
        long h = 0xcbf29ce484222325L;
        for (int b : new int[] {0, 0, 0, 0, 0, 0, 1, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE}) {
            h = (h ^ b) * 0x100000001b3L;
        }
        assertEquals(h & Long.MAX_VALUE, Outcome.hash(new long[] {258, -2}));
    }

    @Test
    void aDecisionThatNoItemCanFollowGoesAlone() throws Exception {
        sendPairs(0, 8);
        decide(10, 40); // to 3.9 s; but then nothing comes until 10 s
        assertEquals(0, rows("prediction").stream().filter(p -> ts(p) >= T0_US + 20 * STEP_US).count());
        sendPairs(40, 60);
        harness.processWatermark(new Watermark(brokerMs(60)));
        List<Map<String, String>> got = predictionsInOrder();
        assertEquals(30, got.size(), "none is lost");
        for (Map<String, String> p : got) {
            boolean known = rows("item").stream().anyMatch(i -> ts(i) == ts(p));
            assertEquals(known, !p.get("class").equals("unknown"), "at " + (ts(p) - T0_US));
            if (!known) {
                assertEquals("unknown unknown 0", p.get("class_now") + " " + p.get("features_match") + " "
                        + p.get("complete"));
            }
        }
        assertTrue(got.get(29).get("class").equals("unknown"));
        // Times that have been passed without an item have none for a decision that comes late.
        send(ap.decisions(9, T0_US + 60 * STEP_US, new Decided(T0_US + 60 * STEP_US, 1, 0)), brokerMs(60));
        assertEquals(31, rows("prediction").size());
    }

    @Test
    void aDecisionOfAnApThatSendsNothingElseWaitsUntilItsStateIsDropped() throws Exception {
        decide(0, 10);
        long taken = T0_US / 1000 + 1000;
        long dropped = taken + SETTINGS.stateTtl().toMillis();
        harness.processWatermark(new Watermark(dropped - 1));
        assertEquals(List.of(), rows("prediction"));
        assertTrue(harness.numEventTimeTimers() <= 2);
        harness.processWatermark(new Watermark(dropped));
        assertEquals(10, rows("prediction").stream().filter(p -> p.get("class").equals("unknown")).count());
        assertEquals(0, harness.numKeyedStateEntries());
        harness.processWatermark(new Watermark(dropped + PredictionJoin.SILENCE_MS));
        assertEquals(0, harness.numEventTimeTimers());
        assertEquals(10, rows("prediction").size());
    }

    /** Its time goes on by five minutes at once, and the batches that complete their items come after that. */
    @Test
    void theLastDecisionsBeforeTheBrokerStoodStillMeetTheirItems() throws Exception {
        decide(10, 40);
        sendPairs(0, 16);
        long later = brokerMs(16) + 300_000;
        harness.processWatermark(new Watermark(later));
        for (long s = 16; s < 40; s++) {
            send(ap.samples(s), later + s);
            send(ap.packets(s), later + s);
        }
        List<Map<String, String>> got = predictionsInOrder();
        assertEquals(30, got.size());
        assertTrue(got.stream().noneMatch(p -> p.get("class").equals("unknown")), got.toString());
    }

    @Test
    void decisionsBeforeARebootGoAlone() throws Exception {
        sendPairs(0, 12);
        decide(20, 40);
        int before = rows("prediction").size();
        ap.bootId = 6;
        ap.t0Us = T0_US + 30_000_000;
        sendPairs(0, 12);
        List<Map<String, String>> got = predictionsInOrder();
        assertEquals(20, got.size());
        assertTrue(before < 20 && got.get(19).get("class").equals("unknown"));
        ap.bootId = 5;
        send(ap.decisions(9, T0_US + 60 * STEP_US, new Decided(T0_US + 60 * STEP_US, 1, 0)), brokerMs(60));
        assertEquals(21, rows("prediction").size(), "one that comes after the reboot waits for nothing");
    }

    @Test
    void anItemServesOneDecision() throws Exception {
        Decided d = new Decided(T0_US + 20 * STEP_US, 2, 0);
        send(ap.decisions(0, d.instantUs(), d, d), brokerMs(10));
        sendPairs(0, 30);
        send(ap.decisions(1, d.instantUs(), d), brokerMs(30));
        assertEquals(List.of("Poor", "unknown", "unknown"), rows("prediction").stream().map(p -> p.get("class"))
                .toList());
    }

    @Test
    void nonsenseIsRefused() throws Exception {
        long t = T0_US + 20 * STEP_US;
        BatchBuilder b = ap.decisions(0, t, new Decided(t, 2, 0), new Decided(t, 4, 0));
        int at = oal.schema.Tables.Decision.TICK;
        b.sparse(oal.schema.Tables.DECISION, at, 1, oal.schema.Tables.Decision.INSTANT_US, 1,
                oal.schema.Tables.Decision.CLASS, 1);
        b.sparse(oal.schema.Tables.DECISION, at, 1, oal.schema.Tables.Decision.INSTANT_US, Long.MAX_VALUE,
                oal.schema.Tables.Decision.CLASS, 1);
        b.sparse(oal.schema.Tables.DECISION, at, 1, oal.schema.Tables.Decision.INSTANT_US, t,
                oal.schema.Tables.Decision.CONGESTED_PERMILLE, 1001);
        b.sparse(oal.schema.Tables.DECISION, at, 1, oal.schema.Tables.Decision.INSTANT_US, t,
                oal.schema.Tables.Decision.CONFIDENCE_PERMILLE, 65535);
        send(b, brokerMs(10));
        sendPairs(0, 30);
        assertEquals(1, rows("prediction").size());
    }

    @Test
    void aRestoredStateGoesOnAsIfNothingHadHappened() throws Exception {
        decide(10, 40);
        sendPairs(0, 40);
        decide(40, 80);
        sendPairs(40, 60);
        List<Map<String, String>> want = predictionsInOrder();
        close();
        open();
        decide(10, 40);
        sendPairs(0, 13); // some decisions wait, and some items below
        sendPairs(13, 30);
        restore();
        decide(40, 60);
        sendPairs(30, 45);
        restore();
        decide(60, 80);
        sendPairs(45, 60);
        assertEquals(want, predictionsInOrder());
    }

    @Test
    void timersDoNotPileUp() throws Exception {
        for (int s = 0; s < 200; s++) {
            sendPairs(s, s + 1);
            if (s % 4 == 0) decide(s / 4 * 10, s / 4 * 10 + 10);
            harness.processWatermark(new Watermark(brokerMs(s) - 2000));
            assertTrue(harness.numEventTimeTimers() <= 4, harness.numEventTimeTimers() + " timers");
        }
        assertTrue(rows("prediction").stream().filter(p -> !p.get("class").equals("unknown")).count() > 450);
    }

    /**
     * States as the job wrote them before it knew decisions (version 2), and before it added up seconds (3): those of
     * version 7, of an AP without data, without these sections.
     */
    @ParameterizedTest
    @ValueSource(ints = {2, 3})
    void stateOfTheVersionsBeforeIsRead(int version) throws Exception {
        byte[] bytes = StateSettingsTest.before("empty");
        DataOutputSerializer empty = new DataOutputSerializer(64);
        if (version == 2) new ApState(Policies.rwndFair()).first().predictions.write(empty);
        new ApState(Policies.rwndFair()).activity.write(empty);
        new ControlHistory().write(empty);
        long program = 0x369def0f71dcfe23L;
        int hashAt = indexOf(bytes, java.nio.ByteBuffer.allocate(8).putLong(program).array());
        DataOutputSerializer settings = new DataOutputSerializer(64);
        StateSettings.NOW.write(settings);
        int noPolicies = 1; // the number of further ones, 0
        DataOutputSerializer before = new DataOutputSerializer(bytes.length);
        before.writeByte(version);
        int lossWait = 4; // which settings had not
        int from = 1 + settings.length() - lossWait;
        before.write(bytes, from, hashAt - noPolicies - empty.length() - from);
        before.write(bytes, hashAt, bytes.length - hashAt);
        DataInputDeserializer in = new DataInputDeserializer(before.getCopyOfBuffer());
        ApState read = ApState.read(in, Policies.rwndFair(), StateSettings.NOW);
        assertEquals("lab 17 0 0", read.site + " " + read.lastMs + " " + read.first().predictions.size() + " "
                + in.available());
    }

    /** After the program has changed, features begin anew; what follows them in the state must not be in the way. */
    @Test
    void stateOfAnotherFeatureProgramIsReadWithoutItsFeatures() throws Exception {
        sendPairs(0, 3);
        DataOutputSerializer out = new DataOutputSerializer(1 << 16);
        ApState some = new ApState(Policies.rwndFair());
        ApProcessor processor = new ApProcessor(Policies.rwndFair(), LATENESS_MS, new HostileApTest.Count());
        for (long s = 0; s < 20; s++) {
            for (BatchBuilder b : List.of(ap.samples(s), ap.packets(s))) {
                processor.accept(some, accepted(b, brokerMs(s)), Long.MIN_VALUE);
            }
        }
        some.write(out);
        byte[] bytes = out.getCopyOfBuffer();
        bytes[indexOf(bytes, java.nio.ByteBuffer.allocate(8).putLong(Policies.rwndFair().first().featureHash)
                .array())] ^= 1;
        DataInputDeserializer in = new DataInputDeserializer(bytes);
        ApState read = ApState.read(in, Policies.rwndFair(), StateSettings.NOW);
        assertEquals(0, in.available());
        assertEquals(0, read.first().features.entities());
        assertTrue(some.first().features.entities() > 0);
    }

    private static int indexOf(byte[] in, byte[] what) {
        for (int i = 0; i + what.length <= in.length; i++) {
            if (java.util.Arrays.equals(in, i, i + what.length, what, 0, what.length)) return i;
        }
        throw new AssertionError("not there");
    }
}
