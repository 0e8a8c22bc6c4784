package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import oal.stream.policy.Manifests;
import oal.stream.policy.Policies;
import oal.stream.process.ApTraffic.Decided;
import org.junit.jupiter.api.Test;

/** Several policies of one access point: each has its vectors, items, predictions; instants and labels are shared. */
class ApPoliciesTest extends ApHarness {
    private static final long STEP_US = 100_000;
    private static final String OTHER = "example";

    private void begin(Policies now) throws Exception {
        close();
        policies = now;
        open();
    }

    private List<Map<String, String>> items(String policy) throws Exception {
        return rows("item").stream().filter(i -> i.get("policy").equals(policy)).toList();
    }

    private List<String> records() {
        return harness.extractOutputValues().stream().map(i -> new String(i.json, StandardCharsets.UTF_8)).toList();
    }

    /** One decision of a program's at each of ten instants, from number {@code from} on. */
    private void decide(int from, long featureHash) throws Exception {
        long t0 = T0_US + from * STEP_US;
        ap.featureHash = featureHash;
        send(ap.decisions(from, t0, IntStream.range(from, from + 10)
                .mapToObj(k -> new Decided(T0_US + k * STEP_US, k % 4, k)).toArray(Decided[]::new)), t0 / 1000 + 1000);
    }

    @Test
    void whatRwndFairGetsIsTheSameWithAnotherBeside() throws Exception {
        sendPairs(0, 40);
        List<Map<String, String>> alone = rows("item");
        List<Map<String, String>> labels = rows("label");
        List<String> records = records();
        begin(Manifests.with(OTHER));
        sendPairs(0, 40);
        assertTrue(alone.size() > 50, alone.size() + " items");
        assertEquals(alone, items("rwnd-fair"));
        assertEquals(labels, rows("label"));
        assertEquals(records, records().stream().filter(r -> !r.contains("\"policy\"")).toList());
    }

    @Test
    void eachInstantGivesAnItemOfEachInTheirOrderWithTheSameLabel() throws Exception {
        begin(Manifests.with(OTHER));
        sendPairs(0, 40);
        List<Map<String, String>> all = rows("item");
        assertTrue(all.size() > 100 && all.size() % 2 == 0, all.size() + " items");
        int complete = 0;
        for (int i = 0; i < all.size(); i += 2) {
            Map<String, String> first = all.get(i);
            Map<String, String> other = all.get(i + 1);
            assertEquals("rwnd-fair example", first.get("policy") + " " + other.get("policy"));
            for (String same : List.of("ts", "ap_id", "site", "boot_id", "class", "class_now", "loss_ratio")) {
                assertEquals(first.get(same), other.get(same), same);
            }
            assertNotEquals(first.get("feature_hash"), other.get("feature_hash"));
            // The AP's backlog is 1000 + number of the batch: an instant sees the batch that it is in.
            long batch = (ts(other) - T0_US) / ApTraffic.BATCH_US;
            assertEquals("[" + (1000 + batch) + ", " + (1000 + batch) + "]", other.get("features"));
            if (other.get("complete").equals("1")) complete++;
        }
        assertTrue(complete > 20, complete + " complete");
        List<String> records = records();
        assertEquals(all.size(), records.size());
        for (int i = 0; i < records.size(); i++) {
            assertEquals(i % 2 == 1, records.get(i).contains(",\"policy\":\"example\","), records.get(i));
        }
    }

    @Test
    void aDecisionMeetsTheItemOfThePolicyWhoseProgramItsBatchNames() throws Exception {
        begin(Manifests.with(OTHER));
        decide(10, policies.first().featureHash);
        decide(20, policies.get(1).featureHash);
        decide(30, 4711); // nobody's
        sendPairs(0, 40);
        List<Map<String, String>> got = rows("prediction").stream().sorted((a, b) -> Long.compare(ts(a), ts(b)))
                .toList();
        assertEquals(30, got.size());
        for (int i = 0; i < 30; i++) {
            Map<String, String> p = got.get(i);
            assertEquals(i / 10 == 1 ? OTHER : "rwnd-fair", p.get("policy"));
            assertNotEquals("unknown", p.get("class"));
            // The AP's hashes of its vectors are made up, so they differ where they can be compared.
            assertEquals(i / 10 == 2 ? "unknown" : "differ", p.get("features_match"));
        }
    }

    @Test
    void decisionsOnDestinationsMeetNoItemAndNobodyWaitsForOne() throws Exception {
        sendPairs(0, 40);
        List<Map<String, String>> items = rows("item");
        begin(Manifests.withDestination());
        decide(10, 4711);
        assertEquals(1, harness.numEventTimeTimers(), "that which ends the state: no decision waits");
        sendPairs(0, 40);
        assertEquals(items, rows("item"));
        assertEquals(List.of(), rows("prediction"));
        begin(Policies.rwndFair()); // a job that does not know the program takes them for rwnd-fair's
        decide(10, 4711);
        sendPairs(0, 40);
        assertEquals(10, rows("prediction").size());
    }

    @Test
    void aRestoredStateGoesOnAsIfNothingHadHappened() throws Exception {
        begin(Manifests.with(OTHER, "third"));
        decide(20, policies.get(1).featureHash);
        sendPairs(0, 60);
        List<Map<String, String>> items = rows("item");
        List<Map<String, String>> predictions = rows("prediction");
        begin(Manifests.with(OTHER, "third"));
        decide(20, policies.get(1).featureHash);
        sendPairs(0, 7);
        restore();
        sendPairs(7, 23);
        policies = Manifests.with("third", OTHER); // another file, the same policies in another order
        restore();
        sendPairs(23, 60);
        for (String policy : List.of("rwnd-fair", OTHER, "third")) {
            assertEquals(items.stream().filter(i -> i.get("policy").equals(policy)).toList(), items(policy), policy);
        }
        assertEquals(predictions, rows("prediction"));
    }

    @Test
    void aPolicyThatIsNewBeginsEmptyAndDisturbsNobody() throws Exception {
        sendPairs(0, 60);
        List<Map<String, String>> alone = rows("item");
        begin(Policies.rwndFair());
        sendPairs(0, 30);
        policies = Manifests.with(OTHER);
        restore();
        sendPairs(30, 60);
        assertEquals(alone, items("rwnd-fair"));
        List<Map<String, String>> others = items(OTHER);
        assertTrue(others.size() > 20, others.size() + " items");
        assertTrue(ts(others.get(0)) >= T0_US + 30 * ApTraffic.BATCH_US);
        assertEquals("0", others.get(0).get("complete"), "it has not looked back as far as it should");
        assertEquals("1", others.get(others.size() - 1).get("complete"));
    }

    @Test
    void aPolicyThatHasGoneIsDroppedAndItsDecisionsGoAlone() throws Exception {
        sendPairs(0, 60);
        List<Map<String, String>> alone = rows("item");
        begin(Manifests.with(OTHER));
        sendPairs(0, 30);
        decide(80, policies.get(1).featureHash);
        policies = Policies.rwndFair();
        restore();
        sendPairs(30, 60);
        assertEquals(alone, items("rwnd-fair"));
        List<Map<String, String>> predictions = rows("prediction");
        assertEquals(10, predictions.size());
        for (Map<String, String> p : predictions) {
            assertEquals("example unknown", p.get("policy") + " " + p.get("class"));
        }
        int before = items(OTHER).size();
        policies = Manifests.with(OTHER);
        restore();
        sendPairs(60, 76);
        assertEquals("0", items(OTHER).get(before).get("complete"), "nothing of it was left");
    }

    @Test
    void anotherProgramUnderTheSameNameBeginsAnewButDecisionsWaitOn() throws Exception {
        begin(Manifests.with(OTHER));
        sendPairs(0, 30);
        decide(80, policies.get(1).featureHash);
        int before = items(OTHER).size();
        policies = Policies.of(Manifests.file(Manifests.rwndFair(),
                Manifests.entry(OTHER, "congestion", Manifests.backlog(30))));
        restore();
        sendPairs(30, 60);
        assertEquals("0", items(OTHER).get(before).get("complete"));
        List<Map<String, String>> predictions = rows("prediction");
        assertEquals(10, predictions.size());
        assertTrue(predictions.stream().anyMatch(p -> !p.get("class").equals("unknown")), predictions.toString());
    }
}
