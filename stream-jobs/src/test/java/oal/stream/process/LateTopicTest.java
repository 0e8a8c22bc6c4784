package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.junit.jupiter.api.Test;

/**
 * One topic of an access point reaches the brokers so long after the other that it is given up, and then comes after
 * all. No instant comes twice. That the job reads one topic ahead of the other is no reason: the watermark tells of
 * both ({@code CatchUpTest}).
 */
class LateTopicTest extends ApHarness {
    private void assertEveryInstantOnce() throws Exception {
        for (String table : List.of("label", "item")) {
            List<Long> instants = rows(table).stream().map(ApHarness::ts).toList();
            for (int i = 1; i < instants.size(); i++) {
                assertEquals(instants.get(i - 1) + 100_000, instants.get(i), table + " " + i);
            }
        }
    }

    private void behind(long packetsBefore, boolean failing) throws Exception {
        sendPairs(0, packetsBefore);
        if (failing) restore();
        for (long s = packetsBefore; s < 80; s++) send(ap.samples(s));
        harness.processWatermark(new Watermark((T0_US + 80 * ApTraffic.BATCH_US) / 1000 + LATENESS_MS));
        if (failing) restore();
        for (long s = packetsBefore; s < 80; s++) send(ap.packets(s));
        sendPairs(80, 120);
        assertEveryInstantOnce();
        List<Map<String, String>> late = rows("late");
        assertTrue(late.size() >= 79 - packetsBefore, late.size() + " late batches");
        assertEquals(List.of("ap.packets.v1"), late.stream().map(row -> row.get("topic")).distinct()
                .collect(Collectors.toList()));
        Map<String, String> last = rows("label").get(rows("label").size() - 1);
        assertEquals("1", last.get("complete"), "whole again once both topics are in step");
    }

    @Test
    void aTopicThatBeginsLate() throws Exception {
        behind(0, false);
    }

    @Test
    void aTopicThatFallsBehind() throws Exception {
        behind(20, false);
    }

    @Test
    void aTopicThatFallsBehindWhileTheJobFails() throws Exception {
        behind(20, true);
    }
}
