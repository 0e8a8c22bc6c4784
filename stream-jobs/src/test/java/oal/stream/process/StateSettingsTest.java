package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import oal.stream.codec.BatchBuilder;
import oal.stream.label.LabelWindow;
import oal.stream.label.Labeler;
import oal.stream.policy.Manifests;
import oal.stream.policy.Policies;
import oal.stream.state.StateSettings;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A checkpoint of a job that was built with other settings: what can be taken over is, the rest is refused. */
class StateSettingsTest extends ApHarness {
    private static final StateSettings NOW = StateSettings.NOW;
    private static final int RESTORED = 20;
    /** Up to here the batches before the restart have told all. */
    private static final long RESTORED_US = (T0_US + RESTORED * ApTraffic.BATCH_US) / NOW.decisionIntervalUs()
            * NOW.decisionIntervalUs();

    private static StateSettings with(int intervalUs, int horizonUs, int windowUs) {
        return new StateSettings(NOW.tickUs(), intervalUs, horizonUs, windowUs, NOW.lossWaitUs(),
                NOW.classBoundsPermille());
    }

    /** Rows by their time; none has the same time as another. */
    private TreeMap<Long, Map<String, String>> byTime(String table) throws Exception {
        TreeMap<Long, Map<String, String>> all = new TreeMap<>();
        for (Map<String, String> row : rows(table)) assertTrue(all.put(ts(row), row) == null, "twice: " + row);
        return all;
    }

    private void assertTakenOver(StateSettings was) throws Exception {
        sendPairs(0, 60);
        TreeMap<Long, Map<String, String>> labels = byTime("label");
        TreeMap<Long, Map<String, String>> items = byTime("item");
        close();
        settings = was;
        open();
        sendPairs(0, RESTORED);
        long labelled = byTime("label").lastKey();
        long made = byTime("item").lastKey();
        settings = NOW;
        restore();
        sendPairs(RESTORED, 60);
        // The first instant after the restart closes the first window that may be whole again.
        boolean labelsGoOn = was.labelWindowUs() == NOW.labelWindowUs() && was.lossWaitUs() == NOW.lossWaitUs();
        long labelsUs = labelsGoOn ? labelled + 1 : RESTORED_US;
        assertEquals(labels.tailMap(labelsUs), byTime("label").tailMap(labelsUs));
        // An item whose class now is of a window that was not whole is not complete; from then on all is as ever.
        long itemsUs = labelsGoOn ? RESTORED_US + 1 : RESTORED_US + NOW.labelWindowUs();
        TreeMap<Long, Map<String, String>> found = byTime("item");
        assertEquals(items.tailMap(itemsUs), found.tailMap(itemsUs));
        assertTrue(found.subMap(made + 1, RESTORED_US + 1).isEmpty(), "dropped");
        for (Map<String, String> item : found.subMap(RESTORED_US + 1, itemsUs).values()) {
            assertEquals("0", item.get("complete"));
        }
        assertTrue(found.lastKey() > RESTORED_US + 5_000_000);
    }

    @ParameterizedTest
    @ValueSource(ints = {100_000, 300_000, 700_000})
    void vectorsThatWaitForAnotherHorizonAreDropped(int horizonUs) throws Exception {
        assertTakenOver(with(NOW.decisionIntervalUs(), horizonUs, NOW.labelWindowUs()));
    }

    @ParameterizedTest
    @ValueSource(ints = {500_000, 2_000_000})
    void windowsOfAnotherLengthBeginAnew(int windowUs) throws Exception {
        assertTakenOver(with(NOW.decisionIntervalUs(), NOW.horizonUs(), windowUs));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1_000_000, 3_000_000})
    void labelsThatWaitedForAnotherTimeBeginAnew(int waitUs) throws Exception {
        assertTakenOver(new StateSettings(NOW.tickUs(), NOW.decisionIntervalUs(), NOW.horizonUs(),
                NOW.labelWindowUs(), waitUs, NOW.classBoundsPermille()));
    }

    @Test
    void classesWithOtherBoundsMeetNoneOfThese() throws Exception {
        assertTakenOver(new StateSettings(NOW.tickUs(), NOW.decisionIntervalUs(), NOW.horizonUs(),
                NOW.labelWindowUs(), NOW.lossWaitUs(), List.of(20, 60, 150)));
    }

    /** What version 7 of the state was, which stamped losses when they were sent again; committed. */
    static byte[] before(String name) throws IOException {
        try (InputStream in = StateSettingsTest.class.getResourceAsStream("/state-before-drops/" + name + ".bin")) {
            return in.readAllBytes();
        }
    }

    @Test
    void labelsOfAStateThatKnowsNoDropsBeginAnew() throws Exception {
        sendPairs(0, 60);
        TreeMap<Long, Map<String, String>> meant = byTime("label");
        DataInputDeserializer in = new DataInputDeserializer(before("traffic")); // after as many batches
        ApState state = ApState.read(in, Policies.rwndFair(), NOW);
        assertEquals(0, in.available());
        TreeMap<Long, List<Long>> found = new TreeMap<>();
        ApProcessor processor = new ApProcessor(Policies.rwndFair(), LATENESS_MS, new ApOutput() {
            @Override
            public void label(ApState ap, String apId, LabelWindow w) {
                found.put(w.startUs, List.of(w.offeredPkts, w.congestionLostPkts, w.complete ? 1L : 0));
            }
        });
        for (long s = RESTORED; s < 60; s++) {
            for (BatchBuilder b : List.of(ap.samples(s), ap.packets(s))) {
                processor.accept(state, accepted(b, brokerMs(s)), Long.MIN_VALUE);
            }
        }
        assertTrue(found.firstKey() >= RESTORED_US);
        assertTrue(found.firstKey() <= RESTORED_US + 200_000, "with the next whole window");
        for (Map.Entry<Long, List<Long>> label : found.entrySet()) {
            Map<String, String> row = meant.get(label.getKey());
            assertEquals(row.get("offered_pkts") + " " + row.get("congestion_lost_pkts"), label.getValue().get(0) + " "
                    + label.getValue().get(1));
        }
        assertEquals(1, found.lastEntry().getValue().get(2), "complete");
    }

    private static String words(Throwable e) {
        return e == null ? "" : e.getMessage() + "\n" + words(e.getCause());
    }

    @Test
    void anotherDecisionIntervalIsRefusedWithWhatToDo() throws Exception {
        close();
        settings = with(50_000, NOW.horizonUs(), NOW.labelWindowUs());
        open();
        sendPairs(0, RESTORED);
        settings = NOW;
        String said = words(assertThrows(Exception.class, this::restore));
        assertTrue(said.contains("decision_interval_us = 50000, and this job has 100000 (schema/settings.yaml)"), said);
        assertTrue(said.contains("start afresh: without a checkpoint"), said);
        open(); // one that can be closed
    }

    @Test
    void soIsAnotherSamplingPeriodAtOnce() {
        StateSettings was = new StateSettings(8000, NOW.decisionIntervalUs(), NOW.horizonUs(), NOW.labelWindowUs(),
                NOW.lossWaitUs(), NOW.classBoundsPermille());
        ApStateSerializer.Snapshot now = new ApStateSerializer.Snapshot(Policies.rwndFair(), NOW);
        String said = words(assertThrows(IllegalStateException.class, () -> now.resolveSchemaCompatibility(
                new ApStateSerializer.Snapshot(Policies.rwndFair(), was))));
        assertTrue(said.contains("tick_us = 8000, and this job has 4000"), said);
    }

    /** Versions 3, of rwnd-fair alone, and 4. */
    @Test
    void aCheckpointThatDoesNotSayItsSettingsHasTheFirst() throws Exception {
        assertEquals(NOW, new StateSettings(4000, 100_000, 200_000, 1_000_000, NOW.lossWaitUs(), List.of(10, 50, 120)),
                "when settings change, UNSAID stays, and this test says so");
        byte[] manifests = Manifests.with("example").manifests();
        DataOutputSerializer four = new DataOutputSerializer(64);
        four.writeInt(manifests.length);
        four.write(manifests);
        ApStateSerializer.Snapshot now = new ApStateSerializer.Snapshot(Policies.rwndFair(), NOW);
        for (Map.Entry<Integer, byte[]> old : Map.of(3, new byte[0], 4, four.getCopyOfBuffer()).entrySet()) {
            ApStateSerializer.Snapshot was = new ApStateSerializer.Snapshot();
            was.readSnapshot(old.getKey(), new DataInputDeserializer(old.getValue()), null);
            assertTrue(now.resolveSchemaCompatibility(was).isCompatibleAsIs());
        }
        DataOutputSerializer six = new DataOutputSerializer(64);
        new ApStateSerializer.Snapshot(Manifests.with("example"), with(NOW.decisionIntervalUs(), 300_000, 1_000_000))
                .writeSnapshot(six);
        ApStateSerializer.Snapshot said = new ApStateSerializer.Snapshot();
        said.readSnapshot(6, new DataInputDeserializer(six.getCopyOfBuffer()), null);
        assertEquals(six.length(), StateSettingsTest.length(said));
    }

    private static int length(ApStateSerializer.Snapshot snapshot) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(64);
        snapshot.writeSnapshot(out);
        return out.length();
    }

    /** Of a job that was built with others before states said them: its vectors stand at other places. */
    @Test
    void settingsThatAreNeitherSaidNorTheFirstAreFoundOut() throws Exception {
        oal.stream.item.ItemJoin other = new oal.stream.item.ItemJoin(with(100_000, 700_000, 1_000_000));
        oal.stream.label.LabelWindow ended = new oal.stream.label.LabelWindow();
        for (int i = 0; i < 40; i++) other.next(T0_US + i * 100_000L, 5, new long[] {1, 2}, true, false, ended,
                new Labeler(NOW));
        DataOutputSerializer out = new DataOutputSerializer(1 << 12);
        other.write(out);
        oal.stream.item.ItemJoin now = new oal.stream.item.ItemJoin(NOW);
        IOException e = assertThrows(IOException.class, () -> now.read(
                new DataInputDeserializer(out.getCopyOfBuffer()), StateSettings.UNSAID));
        assertTrue(e.getMessage().contains("a job with other settings"), e.getMessage());
    }
}
