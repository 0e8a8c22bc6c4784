package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import oal.schema.Settings;
import oal.stream.codec.BatchBuilder;
import oal.stream.item.TrainingItem;
import oal.stream.operator.PipelineSettings;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.junit.jupiter.api.Test;

/** Order, waiting, holes, lateness and state of the keyed operator. */
class ApOperatorTest extends ApHarness {
    @Test
    void labelsAreThoseOfTheTraffic() throws Exception {
        sendPairs(0, 28);
        List<Map<String, String>> labels = rows("label");
        assertEquals(T0_US, ts(labels.get(0)), "the first window starts with the data");
        // 28 batches are 7.06 s: instants up to the last row are final, and windows of 1 s that ended 2 s before:
        // 0 … 4 s.
        assertEquals(41, labels.size());
        for (int i = 0; i < labels.size(); i++) {
            Map<String, String> l = labels.get(i);
            assertEquals(T0_US + i * 100_000L, ts(l));
            assertEquals("1000", l.get("offered_pkts"));
            assertEquals("100", l.get("lost_pkts"));
            assertEquals("0.1", l.get("loss_ratio"));
            assertEquals("Poor", l.get("class"));
            assertEquals("1", l.get("flows"));
            assertEquals("1", l.get("complete"), "window " + i);
        }
    }

    @Test
    void itemsPairFeaturesWithWhatCameTrue() throws Exception {
        sendPairs(0, 48);
        List<Map<String, String>> items = rows("item");
        Map<Long, Map<String, String>> labels = rows("label").stream().collect(Collectors.toMap(ApHarness::ts, l -> l));
        assertTrue(items.size() > 50, items.size() + " items");
        int complete = 0;
        for (Map<String, String> i : items) {
            Map<String, String> label = labels.get(ts(i) + Settings.HORIZON_US);
            assertEquals(label.get("class"), i.get("class"));
            assertEquals(label.get("offered_pkts"), i.get("offered_pkts"));
            Map<String, String> now = labels.get(ts(i) - Settings.LABEL_WINDOW_US);
            if (now != null) assertEquals(now.get("class"), i.get("class_now"));
            else assertEquals("0", i.get("complete"));
            long seq = (ts(i) - T0_US) / ApTraffic.BATCH_US;
            if ((ts(i) - T0_US) % ApTraffic.BATCH_US > 12_000) {
                assertTrue(i.get("features").startsWith("[" + (1000 + seq) + ", "), i.get("features"));
            }
            if (i.get("complete").equals("1")) complete++;
        }
        // Features look back over 1.5 s (a lag of 5 instants over a window of 10), the class now over 1 s.
        assertEquals(items.size() - 15, complete);
        List<TrainingItem> records = harness.extractOutputValues();
        assertEquals(items.size(), records.size());
        String json = new String(records.get(20).json, StandardCharsets.UTF_8);
        Map<String, String> row = items.get(20);
        assertTrue(json.startsWith("{\"ap_id\":\"ap-1\",\"site\":\"lab\",\"ts_us\":" + row.get("ts")
                + ",\"boot_id\":5,\"feature_hash\":" + row.get("feature_hash") + ",\"features\":["), json);
        assertTrue(json.contains("\"features\":" + row.get("features").replace(" ", "")), json);
        assertTrue(json.endsWith(",\"class\":2,\"loss_ratio\":0.1,\"offered_pkts\":1000,\"complete\":true,"
                + "\"loss_permille_resent\":100,\"loss_permille_now_resent\":100,\"since_drop_us\":2000,"
                + "\"until_drop_us\":8000}"), json);
    }

    @Test
    void timersDoNotPileUp() throws Exception {
        sendPairs(0, 1);
        assertEquals(2, harness.numEventTimeTimers(), "to stop waiting, and to end the state");
        for (long s = 1; s < 100; s++) {
            sendPairs(s, s + 1);
            harness.processWatermark(new Watermark(brokerMs(s)));
            assertTrue(harness.numEventTimeTimers() <= 2);
        }
    }

    @Test
    void theOrderOfArrivalDoesNotMatter() throws Exception {
        sendPairs(0, 30);
        List<Map<String, String>> want = rows("item");
        close();
        open();
        send(ap.packets(0));
        send(ap.samples(0));
        for (long s = 1; s < 29; s += 2) { // two packets batches ahead, samples swapped
            send(ap.packets(s));
            send(ap.packets(s + 1));
            send(ap.samples(s + 1));
            send(ap.samples(s));
        }
        send(ap.packets(29));
        send(ap.samples(29));
        assertEquals(want, rows("item"));
        assertEquals(List.of(), rows("late"));
    }

    @Test
    void aMissingBatchIsWaitedForAndThenGivenUp() throws Exception {
        sendPairs(0, 8);
        int labels = rows("label").size();
        send(ap.samples(8)); // packets 8 are missing
        sendPairs(9, 12);
        assertEquals(labels, rows("label").size(), "nothing goes on without it");
        harness.processWatermark(new Watermark(brokerMs(8) + LATENESS_MS - 1));
        assertEquals(labels, rows("label").size());
        harness.processWatermark(new Watermark(brokerMs(9) + LATENESS_MS));
        sendPairs(12, 40);
        List<Map<String, String>> after = rows("label");
        long holeFrom = T0_US + 8 * ApTraffic.BATCH_US;
        long holeUntil = T0_US + 9 * ApTraffic.BATCH_US;
        int incomplete = 0;
        for (Map<String, String> l : after) {
            boolean touches = ts(l) < holeUntil && ts(l) + Settings.LABEL_WINDOW_US + Settings.LOSS_WAIT_US > holeFrom;
            assertEquals(touches ? "0" : "1", l.get("complete"), "window at " + (ts(l) - T0_US));
            if (touches) incomplete++;
        }
        assertTrue(incomplete >= 12, incomplete + " windows touch the hole");
        assertTrue(after.size() > 60);
        for (Map<String, String> i : rows("item")) {
            boolean touches = ts(i) - Settings.LABEL_WINDOW_US < holeUntil && ts(i) + Settings.HORIZON_US
                    + Settings.LABEL_WINDOW_US + Settings.LOSS_WAIT_US > holeFrom;
            if (touches) assertEquals("0", i.get("complete"), "item at " + (ts(i) - T0_US));
        }
    }

    @Test
    void aBatchThatComesAfterItsTurnIsLate() throws Exception {
        sendPairs(0, 20);
        send(ap.samples(20));
        sendPairs(21, 23);
        harness.processWatermark(new Watermark(brokerMs(23) + LATENESS_MS));
        send(ap.packets(20));
        List<Map<String, String>> late = rows("late");
        assertEquals(1, late.size());
        assertEquals("20", late.get(0).get("seq"));
        assertEquals("ap.packets.v1", late.get(0).get("topic"));
        assertEquals("252", late.get(0).get("rows"));
        assertEquals(Long.toString(2 * ApTraffic.BATCH_US), late.get(0).get("late_us"));
        int labels = rows("label").size();
        sendPairs(23, 24);
        assertTrue(rows("label").size() > labels, "and the AP goes on");
    }

    @Test
    void anApThatSendsNoPacketsStillGivesLabels() throws Exception {
        for (long s = 0; s < 40; s++) {
            send(ap.samples(s));
            harness.processWatermark(new Watermark(brokerMs(s)));
            if (brokerMs(s) < brokerMs(0) + LATENESS_MS) assertEquals(List.of(), rows("label"));
        }
        harness.processWatermark(new Watermark(brokerMs(40) + LATENESS_MS));
        List<Map<String, String>> labels = rows("label");
        assertTrue(labels.size() > 50);
        for (Map<String, String> l : labels) assertEquals("0", l.get("complete"));
        assertTrue(rows("item").stream().allMatch(i -> i.get("complete").equals("0")));
    }

    @Test
    void holesInSamplingAndRingDropsMakeWindowsIncomplete() throws Exception {
        sendPairs(0, 4);
        BatchBuilder few = ap.samples(4);
        few.missedStart = new long[] {3, 30};
        few.missedTicks = new long[] {12, 12}; // less than half a decision interval each: nothing is lost by that
        send(few);
        send(ap.packets(4));
        sendPairs(5, 8);
        BatchBuilder missed = ap.samples(8);
        missed.missedStart = new long[] {25};
        missed.missedTicks = new long[] {13};
        send(missed);
        send(ap.packets(8));
        sendPairs(9, 20);
        BatchBuilder drops = ap.packets(20);
        drops.ringDrops = 3;
        send(ap.samples(20));
        send(drops);
        sendPairs(21, 30);
        long tick = T0_US + 8 * ApTraffic.BATCH_US + 25 * 4000;
        long dropsFrom = T0_US + 20 * ApTraffic.BATCH_US;
        for (Map<String, String> l : rows("label")) {
            long from = ts(l);
            long until = from + Settings.LABEL_WINDOW_US + Settings.LOSS_WAIT_US; // its losses are seen again by then
            boolean hole = from < tick + 13 * 4000 && until > tick || from < dropsFrom + ApTraffic.BATCH_US
                    && until > dropsFrom;
            assertEquals(hole ? "0" : "1", l.get("complete"), "window at " + (from - T0_US));
        }
    }

    @Test
    void aLongHoleRestarts() throws Exception {
        sendPairs(0, 12);
        int before = rows("label").size();
        sendPairs(40, 60); // 7 s without a word
        harness.processWatermark(new Watermark(brokerMs(60) + LATENESS_MS));
        List<Map<String, String>> labels = rows("label");
        long restart = T0_US + 40 * ApTraffic.BATCH_US;
        List<Long> after = labels.stream().skip(before).map(ApHarness::ts).toList();
        assertEquals((restart + 99_999) / 100_000 * 100_000, after.get(0),
                "windows start again with whole buckets, none spans the hole");
        assertTrue(labels.stream().skip(before).allMatch(l -> l.get("complete").equals("1") && l.get("offered_pkts")
                .equals("1000")));
    }

    @Test
    void aRebootRestartsAndTheOldTailIsLate() throws Exception {
        sendPairs(0, 12);
        BatchBuilder tail = ap.samples(12);
        int before = rows("label").size();
        ap.bootId = 6;
        ap.t0Us = T0_US + 12 * ApTraffic.BATCH_US + 30_000_000;
        sendPairs(0, 20);
        List<Map<String, String>> labels = rows("label");
        assertTrue(labels.size() > before + 5);
        assertEquals("1", labels.get(before).get("complete"));
        assertTrue(ts(labels.get(before)) >= ap.t0Us);
        send(tail);
        assertEquals(List.of("5 12"), rows("late").stream().map(l -> l.get("boot_id") + " " + l.get("seq")).toList());
        assertTrue(rows("item").stream().filter(i -> ts(i) > ap.t0Us).allMatch(i -> i.get("boot_id").equals("6")));
    }

    @Test
    void anApWhoseClockIsWrongIsNotLateAndHurtsNobody() throws Exception {
        ApTraffic ahead = new ApTraffic("ap-ahead", T0_US + 50_000_000);
        ApTraffic behind = new ApTraffic("ap-behind", T0_US - 3_600_000_000L);
        for (long s = 0; s < 28; s++) {
            for (ApTraffic a : List.of(ahead, ap, behind)) {
                send(a.samples(s), brokerMs(s)); // the broker's clock is the same for all
                send(a.packets(s), brokerMs(s));
            }
            harness.processWatermark(new Watermark(brokerMs(s) - 1));
        }
        Map<String, Long> complete = rows("label").stream().filter(l -> l.get("complete").equals("1"))
                .collect(Collectors.groupingBy(l -> l.get("ap_id"), TreeMap::new, Collectors.counting()));
        assertEquals(Map.of("ap-1", 41L, "ap-ahead", 41L, "ap-behind", 41L), complete);
        assertEquals(List.of(), rows("late"));
    }

    @Test
    void aClockThatIsSetBackRestarts() throws Exception {
        sendPairs(0, 12);
        int before = rows("label").size();
        ap.t0Us -= 3_600_000_000L;
        sendPairs(12, 40);
        List<Map<String, String>> labels = rows("label");
        assertTrue(labels.size() > before + 20);
        assertTrue(labels.stream().skip(before).allMatch(l -> ts(l) < T0_US && l.get("complete").equals("1")));
        List<Map<String, String>> items = rows("item");
        assertTrue(items.get(items.size() - 1).get("complete").equals("1"));
    }

    @Test
    void aRestoredStateGoesOnAsIfNothingHadHappened() throws Exception {
        sendPairs(0, 40);
        List<Map<String, String>> want = rows("item");
        close();
        open();
        sendPairs(0, 17);
        send(ap.samples(17)); // one waits
        restore();
        send(ap.packets(17));
        sendPairs(18, 40);
        assertEquals(want, rows("item"));
    }

    @Test
    void stateOfASilentApIsDropped() throws Exception {
        sendPairs(0, 3);
        send(ap.samples(3)); // and one that waits for ever
        assertEquals(1, harness.numKeyedStateEntries());
        harness.processWatermark(new Watermark(brokerMs(3) + SETTINGS.stateTtl().toMillis() + 1));
        assertEquals(0, harness.numKeyedStateEntries());
        assertEquals(0, harness.numEventTimeTimers());
    }

    @Test
    void whatWaitsOfAnApThatNeverSendsItsPacketsIsBounded() throws Exception {
        for (long s = 0; s < PipelineSettings.MOST_WAITING + 500; s++) {
            send(ap.samples(s)); // and time stands still: sources would not let it go so far (CatchUpTest)
            if (s == PipelineSettings.MOST_WAITING) assertEquals(List.of(), rows("label"));
        }
        assertTrue(rows("label").size() > 1000, "the oldest have their turn");
        assertTrue(harness.numEventTimeTimers() <= 3 * PipelineSettings.MOST_WAITING);
    }

    /** The broker was away; what the AP kept meanwhile arrives within seconds, one topic before the other. */
    @Test
    void aBurstOfMinutesMeetsItsCounterpart() throws Exception {
        int n = 1500;
        for (long s = 0; s < n; s++) send(ap.samples(s));
        for (long s = 0; s < n; s++) send(ap.packets(s));
        assertEquals(List.of(), rows("late"));
        assertTrue(rows("label").size() > n * 2.5 - 20, "labels: " + rows("label").size());
        assertEquals(0, rows("label").stream().filter(r -> "0".equals(r.get("complete"))).count());
    }

    @Test
    void oneMadRowDoesNotCostMillionsOfEvaluations() throws Exception {
        sendPairs(0, 3);
        BatchBuilder mad = ap.packets(3);
        mad.sparse(oal.schema.Tables.PACKET, oal.schema.Tables.Packet.T_US, (1L << 40) - 1,
                oal.schema.Tables.Packet.PAYLOAD_BYTES, 1);
        send(ap.samples(3));
        send(mad);
        sendPairs(4, 20);
        assertTrue(rows("label").size() < 100);
    }
}
