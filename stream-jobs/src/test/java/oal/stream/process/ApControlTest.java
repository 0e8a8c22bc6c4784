package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.stream.codec.BatchBuilder;
import oal.stream.process.ApTraffic.Decided;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.junit.jupiter.api.Test;

/**
 * Items of a time at which a policy acted say so, as do the predictions that are judged by them: what an action
 * prevented did not come true, and the model that foresaw it was not wrong.
 */
class ApControlTest extends ApHarness {
    private static final int SHADOW = 1;
    private static final int BPF = 3;
    private static final int MODE_SHADOW = 1;
    private static final int MODE_ENFORCE = 2;
    private static final long LEAD_US = Settings.HORIZON_US + Settings.LABEL_WINDOW_US;
    /** Fifteen seconds. */
    private static final int BATCHES = 60;
    private static final int FROM = 20;
    private static final int UNTIL = 30;

    private BatchBuilder events(long seq) {
        BatchBuilder b = ap.decisions(seq, ap.t0Us + seq * ApTraffic.BATCH_US);
        b.names = List.of("rwnd-fair");
        return b;
    }

    /** A batch of events in which control tells of itself. */
    private BatchBuilder control(long seq, int mode, int clamps) {
        return events(seq).sparse(Tables.CONTROL, Tables.Control.TICK, 1, Tables.Control.MODE, mode,
                Tables.Control.CLAMPS, clamps);
    }

    private BatchBuilder action(long seq, int backend, long value) {
        return events(seq).sparse(Tables.ACTION, Tables.Action.KIND, 1, Tables.Action.SUBJECT, 9, Tables.Action.BACKEND,
                backend, Tables.Action.TICK, 2, Tables.Action.VALUE, value);
    }

    /** Every second says what is so; an action is set at the beginning of batch FROM and given up at that of UNTIL. */
    private BatchBuilder told(long seq, int mode, int backend) {
        if (seq == FROM) return action(seq, backend, 5000);
        if (seq == UNTIL) return action(seq, backend, 0);
        return control(seq, mode, seq > FROM && seq < UNTIL ? 1 : 0);
    }

    private TreeSet<Long> marked() throws Exception {
        TreeSet<Long> at = new TreeSet<>();
        for (Map<String, String> item : rows("item")) {
            if (item.get("under_control").equals("yes")) {
                assertEquals("0", item.get("complete"));
                at.add(ts(item) - T0_US);
            }
        }
        return at;
    }

    @Test
    void itemsOfAnActionSaySo() throws Exception {
        for (long s = 0; s < BATCHES; s++) {
            send(told(s, MODE_ENFORCE, BPF), brokerMs(s));
            sendPairs(s, s + 1);
        }
        List<Map<String, String>> items = rows("item");
        assertTrue(items.size() > 100);
        long set = FROM * ApTraffic.BATCH_US + 2 * Settings.TICK_US;
        long givenUp = UNTIL * ApTraffic.BATCH_US + 2 * Settings.TICK_US;
        int complete = 0;
        for (Map<String, String> item : items) {
            long at = ts(item) - T0_US;
            boolean acted = at + LEAD_US > set && at + Settings.HORIZON_US <= givenUp + ControlHistory.REACH_US;
            assertEquals(acted ? "yes" : "no", item.get("under_control"), "at " + at);
            if (acted) assertEquals("0", item.get("complete"));
            else if (item.get("complete").equals("1")) complete++;
        }
        assertTrue(complete > 10);
        assertTrue(!marked().isEmpty());
    }

    @Test
    void predictionsAreMarkedAsTheirItems() throws Exception {
        for (long s = 0; s < BATCHES; s++) {
            BatchBuilder events = told(s, MODE_ENFORCE, BPF);
            long instant = T0_US + s * ApTraffic.BATCH_US / 100_000 * 100_000;
            Decided d = new Decided(instant, 2, 0);
            events.sparse(Tables.DECISION, Tables.Decision.TICK, 1, Tables.Decision.INSTANT_US, d.instantUs(),
                    Tables.Decision.CLASS, 2);
            send(events, brokerMs(s));
            sendPairs(s, s + 1);
        }
        TreeSet<Long> items = marked();
        int judged = 0;
        for (Map<String, String> p : rows("prediction")) {
            if (p.get("class").equals("unknown")) {
                assertEquals("unknown", p.get("under_control"));
                continue;
            }
            boolean acted = items.contains(ts(p) - T0_US);
            assertEquals(acted ? "yes" : "no", p.get("under_control"));
            if (acted) assertEquals("0", p.get("complete"));
            judged++;
        }
        assertTrue(judged > 40);
    }

    @Test
    void whatShadowWouldHaveDoneIsNoAction() throws Exception {
        for (long s = 0; s < BATCHES; s++) {
            send(told(s, MODE_SHADOW, SHADOW), brokerMs(s));
            sendPairs(s, s + 1);
        }
        assertEquals(new TreeSet<>(), marked());
    }

    @Test
    void anApThatSaysNothingOfControlIsNotWaitedFor() throws Exception {
        sendPairs(0, 40);
        int items = rows("item").size();
        assertTrue(items > 50);
        assertEquals(new TreeSet<>(), marked());
    }

    @Test
    void whileItEnforcesItemsWaitForItsEvents() throws Exception {
        send(control(0, MODE_ENFORCE, 0), brokerMs(0));
        sendPairs(0, 28);
        assertEquals(0, rows("item").size(), "what it did after the first batch is not known");
        for (long s = 1; s < 28; s++) send(control(s, MODE_ENFORCE, 0), brokerMs(27));
        int items = rows("item").size();
        assertTrue(items > 30, items + " items");
        assertEquals(new TreeSet<>(), marked());
        sendPairs(28, 48);
        assertEquals(items, rows("item").size(), 3, "these wait again");
        harness.processWatermark(new Watermark(brokerMs(48) + LATENESS_MS));
        assertTrue(rows("item").size() > items + 30, "for as long as a batch is waited for");
        assertTrue(marked().first() > 27 * ApTraffic.BATCH_US - LEAD_US, "then they say that it may have acted");
        assertTrue(marked().size() > 25);
    }

    @Test
    void aMissingBatchOfEventsMayHaveToldOfAnAction() throws Exception {
        for (long s = 0; s < BATCHES; s++) {
            if (s < FROM || s >= UNTIL) send(control(s, MODE_ENFORCE, 0), brokerMs(s));
            sendPairs(s, s + 1);
        }
        harness.processWatermark(new Watermark(brokerMs(BATCHES) + LATENESS_MS));
        TreeSet<Long> marked = marked();
        assertTrue(marked.first() <= FROM * ApTraffic.BATCH_US, "from the hole");
        assertTrue(marked.last() >= UNTIL * ApTraffic.BATCH_US, "to the hole's end, and what it may have reached");
        assertTrue(marked.last() < UNTIL * ApTraffic.BATCH_US + ControlHistory.REACH_US, "and not for ever");
    }

    @Test
    void aRestoredStateKnowsWhatWasDone() throws Exception {
        for (long s = 0; s < BATCHES; s++) {
            if (s % 7 == 0) restore();
            send(told(s, MODE_ENFORCE, BPF), brokerMs(s));
            sendPairs(s, s + 1);
        }
        TreeSet<Long> restored = marked();
        close();
        open();
        for (long s = 0; s < BATCHES; s++) {
            send(told(s, MODE_ENFORCE, BPF), brokerMs(s));
            sendPairs(s, s + 1);
        }
        assertEquals(marked(), restored);
    }

    @Test
    void timesOfActionAreBounded() throws Exception {
        ControlHistory history = new ControlHistory();
        var events = oal.stream.codec.BatchDecoder.all();
        for (long s = 0; s < 40L * ControlHistory.MAX_TIMES; s += 20) {
            BatchBuilder b = action(s, BPF, 1);
            events.decode(oal.schema.Topic.EVENTS, b.build());
            history.add(events, brokerMs(s));
        }
        assertEquals(ControlHistory.MAX_TIMES, history.size());
        assertTrue(history.acted(T0_US, T0_US + 1_000_000), "those that were joined are not forgotten");
        history.passed(T0_US + 40L * ControlHistory.MAX_TIMES * ApTraffic.BATCH_US + 120_000_000);
        assertEquals(0, history.size());
    }
}
