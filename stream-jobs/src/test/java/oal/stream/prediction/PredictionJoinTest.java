package oal.stream.prediction;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import oal.stream.item.Item;
import org.junit.jupiter.api.Test;

/** What is kept, for how long. */
class PredictionJoinTest {
    private static final long TIMEOUT_MS = 1000;

    private final PredictionJoin join = new PredictionJoin(boot -> (int) boot);
    private final List<String> out = new ArrayList<>();
    private final PredictionJoin.Output output = (d, o) ->
            out.add(d.instantUs + (o == null ? " alone" : " " + o.classThen()));

    private static Decision decision(long boot, long instantUs, long kafkaMs) {
        Decision d = new Decision();
        d.bootId = boot;
        d.instantUs = instantUs;
        d.kafkaMs = kafkaMs;
        return d;
    }

    private void pass(long boot, long instantUs, boolean item, long untilMs) {
        Item i = new Item();
        i.bootId = boot;
        i.tsUs = instantUs;
        i.classThen = 3;
        i.features = new long[] {1};
        join.passed(boot, instantUs, item ? i : null, untilMs, output);
    }

    @Test
    void decisionsThatComeInAnyOrderLeaveInTheirs() {
        for (long t : new long[] {3, 1, 2}) join.decided(decision(0, t, 0), output);
        for (long t : new long[] {1, 2, 3}) pass(0, t, t != 2, 0);
        assertEquals(List.of("1 3", "2 alone", "3 3"), out);
        assertEquals(0, join.size());
    }

    @Test
    void itemsAreKeptUntilTheirDecisionCannotComeAnyMore() {
        for (long t = 1; t <= 3; t++) pass(0, t, true, 10 * t);
        join.expire(20, TIMEOUT_MS, output);
        assertEquals(1, join.size());
        join.decided(decision(0, 3, 0), output);
        join.decided(decision(0, 2, 0), output);
        assertEquals(List.of("3 3", "2 alone"), out);
        assertEquals(0, join.size());
    }

    @Test
    void theOneThatHasWaitedLongestSetsTheDeadlineWhateverItsInstant() {
        join.decided(decision(0, 500, 7), output); // before the AP's clock was set back
        join.decided(decision(0, 100, 9), output);
        assertEquals(7 + TIMEOUT_MS, join.deadlineMs(TIMEOUT_MS));
        join.expire(7 + TIMEOUT_MS, TIMEOUT_MS, output);
        assertEquals(List.of("500 alone"), out);
        assertEquals(9 + TIMEOUT_MS, join.deadlineMs(TIMEOUT_MS));
        join.expire(Long.MIN_VALUE, TIMEOUT_MS, output);
        join.expire(8 + TIMEOUT_MS, TIMEOUT_MS, output);
        assertEquals(1, join.size());
    }

    /** As after an outage of the broker, when an access point sends what it kept and one topic is read first. */
    @Test
    void minutesOfItemsMeetTheirDecisions() {
        int n = 6000;
        for (long t = 1; t <= n; t++) pass(0, t, true, Long.MAX_VALUE);
        for (long t = 1; t <= n; t++) join.decided(decision(0, t, 0), output);
        assertEquals(0, out.stream().filter(said -> said.endsWith("alone")).count());
        assertEquals(n, out.size());
    }

    @Test
    void bothSidesAreBounded() {
        int n = PredictionJoin.MAX_WAITING + 5;
        for (int t = 1; t <= n; t++) join.decided(decision(0, t, 0), output);
        assertEquals(PredictionJoin.MAX_WAITING, join.size());
        assertEquals(List.of("1 alone", "2 alone", "3 alone", "4 alone", "5 alone"), out,
                "the oldest go, none is lost");
        join.end(output);
        assertEquals(n, out.size());
        for (int t = 1; t <= PredictionJoin.MAX_KEPT + 5; t++) pass(0, n + t, true, Long.MAX_VALUE);
        assertEquals(PredictionJoin.MAX_KEPT, join.size());
    }
}
