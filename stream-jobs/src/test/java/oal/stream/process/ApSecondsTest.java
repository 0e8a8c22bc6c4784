package oal.stream.process;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import oal.stream.neighbour.ApSecond;
import oal.stream.neighbour.RadioTraffic;
import oal.stream.operator.SideOutput;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the operator says of an access point's seconds, for its neighbours. */
class ApSecondsTest extends ApHarness {
    private final RadioTraffic radio = new RadioTraffic("ap-1", T0_US);

    private void send(long from, long to) throws Exception {
        for (long s = from; s < to; s++) {
            send(radio.samples(s));
            send(radio.packets(s));
        }
    }

    private List<ApSecond> seconds() {
        return SideOutput.of(harness, ApOperator.SECONDS);
    }

    @Test
    void eachSecondIsToldOnceWithTheBrokersTime() throws Exception {
        send(0, 20);
        List<ApSecond> seconds = seconds();
        assertEquals(5, seconds.size());
        for (int i = 0; i < 5; i++) {
            ApSecond s = seconds.get(i);
            assertEquals("ap-1 lab 5180 lab/5180", s.apId + " " + s.site + " " + s.frequencyMhz + " " + s.channel());
            assertEquals(brokerMs(4 * i + 3), s.takenMs);
            assertEquals(2000, s.txKbps);
        }
    }

    @Test
    void aMissingBatchBeginsASecondAnew() throws Exception {
        send(0, 6);
        send(radio.packets(6));
        radio.samples(6); // lost
        send(7, 20);
        harness.processWatermark(new Watermark(brokerMs(20) + LATENESS_MS));
        List<Long> ends = seconds().stream().map(s -> s.takenMs).toList();
        assertEquals(List.of(brokerMs(3), brokerMs(10), brokerMs(14), brokerMs(18)), ends);
        assertEquals(List.of(2000L), seconds().stream().map(s -> s.txKbps).distinct().toList(),
                "nothing of the hole is counted");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "/", "a/b", "ä", "12345678901234567890123456789012345678901234567890123456789012345"})
    void anAccessPointWithoutASiteThatCanBeToldIsNobodysNeighbour(String site) throws Exception {
        radio.site = site;
        send(0, 20);
        assertEquals(List.of(), seconds());
    }

    @Test
    void aRestoredStateGoesOnAsIfNothingHadHappened() throws Exception {
        send(0, 6);
        restore();
        send(6, 8);
        assertEquals(List.of(2000L), seconds().stream().map(s -> s.txKbps).toList());
    }
}
