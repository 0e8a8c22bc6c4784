package oal.stream.policy;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import oal.schema.FeaturePrograms;
import org.junit.jupiter.api.Test;

/** The file of manifests: what the job takes of it, and what it refuses with which words. */
class PoliciesTest {
    private static final long[][] WORDS = Manifests.backlog(3);

    private static String refusal(String... entries) {
        return assertThrows(IllegalArgumentException.class, () -> Policies.of(Manifests.file(entries))).getMessage();
    }

    private static void assertRefused(String says, String... entries) {
        String said = refusal(entries);
        assertTrue(said.contains(says), said);
    }

    @Test
    void thePackedOnesBeginWithTheProgramThatThisRevisionShips() {
        Policies packed = Policies.packed();
        assertEquals("rwnd-fair", packed.first().name);
        assertTrue(packed.first().same(Policies.rwndFair().first()));
        assertEquals(FeaturePrograms.CONGESTION.words().length, packed.first().program.size());
        for (int i = 0; i < packed.size(); i++) assertNotEquals("cc-select", packed.get(i).name, "it is of hosts");
    }

    @Test
    void policiesComeInTheFilesOrderAndGoByTheirPrograms() {
        Policies two = Manifests.with("example");
        assertEquals("rwnd-fair example", two.get(0).name + " " + two.get(1).name);
        assertEquals(2, two.get(1).program.size());
        assertEquals(0, two.withProgram(two.first().featureHash));
        assertEquals(1, two.withProgram(two.get(1).featureHash));
        assertEquals(-1, two.withProgram(0));
    }

    @Test
    void oneAboutDestinationsHasNoItemsAndItsDecisionsAreKnown() {
        Policies policies = Manifests.withDestination();
        assertEquals(1, policies.size());
        assertTrue(policies.ofDestination(4711));
        assertFalse(policies.ofDestination(policies.first().featureHash));
        assertEquals(-1, policies.withProgram(4711));
        Policies full = Policies.of(Manifests.file(Manifests.rwndFair(), Manifests.ofDestination("hosts", -2),
                Manifests.entry("a", "congestion", Manifests.backlog(3)),
                Manifests.entry("b", "congestion", Manifests.backlog(4)),
                Manifests.entry("c", "congestion", Manifests.backlog(5))));
        assertEquals(4, full.size(), "it is none of the four that the job computes");
        assertEquals("a c", full.get(1).name + " " + full.get(3).name);
        assertTrue(full.ofDestination(-2));
    }

    @Test
    void whatIsWrongWithOneAboutDestinationsIsSaidToo() {
        String first = Manifests.rwndFair();
        String hosts = Manifests.ofDestination("hosts", 4711);
        assertRefused("the first one must be rwnd-fair", hosts, first);
        assertRefused("the first one must be rwnd-fair", first.replace("\"label\"",
                "\"subject\": \"destination\", \"label\""));
        assertRefused("named twice", first, hosts, Manifests.ofDestination("hosts", 4712));
        assertRefused("policies hosts and more have the same feature program", first, hosts,
                Manifests.ofDestination("more", 4711));
        assertRefused("policy hosts: feature_hash is 'x', no number", first, hosts.replace("4711", "x"));
        assertRefused("no label is called 'session'", first, Manifests.entry("example", "session", WORDS));
    }

    @Test
    void theyTravelWithTheJob() throws Exception {
        for (Policies sent : new Policies[] {Policies.rwndFair(), Manifests.with("example"),
                Manifests.withDestination()}) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            new ObjectOutputStream(bytes).writeObject(sent);
            Policies got = (Policies) new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
            assertEquals(sent.size(), got.size());
            for (int i = 0; i < sent.size(); i++) assertTrue(sent.get(i).same(got.get(i)));
            assertArrayEquals(sent.manifests(), got.manifests());
            assertEquals(sent.ofDestination(4711), got.ofDestination(4711));
        }
    }

    @Test
    void anUnknownLabelIsRefusedWithThoseThatAreKnown() {
        assertEquals("policy example: no label is called 'loss_event'; this job makes: congestion",
                refusal(Manifests.rwndFair(), Manifests.entry("example", "loss_event", WORDS)));
    }

    @Test
    void whatIsWrongIsSaidOfItsPolicy() {
        String good = Manifests.entry("example", "congestion", WORDS);
        String first = Manifests.rwndFair();
        assertRefused("the first one must be rwnd-fair", good);
        assertRefused("the first one must be rwnd-fair");
        assertRefused("named twice", first, good, good);
        assertRefused("policies example and other have the same feature program", first, good,
                good.replace("example", "other"));
        assertRefused("'Ex' is no name", first, good.replace("example", "Ex"));
        assertRefused("policy example: feature_hash is '7'", first, good.replaceAll("hash\": \"[0-9]+", "hash\": \"7"));
        assertRefused("policy example: decides every 50000 µs", first, good.replace("us\": 100000", "us\": 50000"));
        assertRefused("policy example: 2 features with 1 names", first, good.replace("\"f0\", ", ""));
        assertRefused("policy example: feature program: feature 0 names table 99", first,
                Manifests.entry("example", "congestion", new long[][] {{1, 99, 0, -1, 0, 1, 1, 1, 1, 0, 1, 0}}));
        assertRefused("a feature of 11 words", first, good.replaceFirst("\\[\\[1, ", "[["));
        assertRefused("a feature of over 12 words", first, good.replaceFirst("\\[\\[1, ", "[[1, 1, "));
        assertRefused("START_ARRAY was expected", first, good.replaceFirst("\\[\\[", "3, \"x\": [["));
        assertRefused("5; the job computes at most 4", first, good, good.replace("example", "b"),
                good.replace("example", "c"), good.replace("example", "d"));
        for (String text : new String[] {"{", "[]", "{\"policies\": 3}", "x"}) {
            byte[] file = text.getBytes(StandardCharsets.UTF_8);
            assertThrows(IllegalArgumentException.class, () -> Policies.of(file), text);
        }
    }
}
