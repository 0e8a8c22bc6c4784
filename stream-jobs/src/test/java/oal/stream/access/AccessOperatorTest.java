package oal.stream.access;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import oal.stream.block.NativeReader;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.JsonRecord;
import oal.stream.operator.BlockOperator;
import oal.stream.operator.PipelineSettings;
import oal.stream.operator.SideOutput;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.OneInputStreamOperatorTestHarness;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class AccessOperatorTest {
    private static final String GOOD = "{\"ap_id\":\"ap-1\",\"revoked_at_us\":5,\"who\":\"ann\",\"reason\":\"\"}";

    private OneInputStreamOperatorTestHarness<JsonRecord, DeadLetter> harness;

    @BeforeEach
    void open() throws Exception {
        harness = new OneInputStreamOperatorTestHarness<>(new AccessOperator(PipelineSettings.DEFAULT));
        harness.open();
    }

    @AfterEach
    void close() throws Exception {
        harness.close();
    }

    private List<String> changes() {
        return SideOutput.of(harness, AccessOperator.CHANGES).stream().map(AccessChange::toString).toList();
    }

    @Test
    void recordsBecomeChangesAndNothingIsKept() throws Exception {
        harness.processElement(new StreamRecord<>(AccessRecords.revoked("ap-1", 1_800_000_000_000_000L, 0)));
        harness.processElement(new StreamRecord<>(AccessRecords.restored("ap-1", 1)));
        harness.processElement(
                new StreamRecord<>(
                new JsonRecord("a.B_9-",
                AccessRecords.bytes("{\"reason\":\"\\u00fc\",\"who\":\"\",\"revoked_at_us\":0,\"ap_id\":\"a.B_9-\"}"),
                0, 4, 2)));
        assertEquals(List.of("AccessChange{ap-1, revoked at 1800000000000000, partition 0, offset 0}",
                "AccessChange{ap-1, not revoked, partition 0, offset 1}",
                "AccessChange{a.B_9-, revoked at 0, partition 4, offset 2}"), changes());
        assertEquals(List.of(), harness.extractOutputValues());
        harness.prepareSnapshotPreBarrier(1);
        assertTrue(harness.snapshot(1, 1).getManagedOperatorState().isEmpty());
    }

    static Stream<Arguments> refused() {
        return Stream.of(
                Arguments.of("malformed", "no name of an access point", "", GOOD),
                Arguments.of("malformed", "no name of an access point", "-a", GOOD),
                Arguments.of("malformed", "no name of an access point", "a".repeat(65), GOOD),
                Arguments.of("malformed", "no name of an access point", "a b", null),
                Arguments.of("key_mismatch", "key 'ap-2', ap_id 'ap-1'", "ap-2", GOOD),
                Arguments.of("malformed", "must be an object", "ap-1", ""),
                Arguments.of("malformed", "must be an object", "ap-1", "null"),
                Arguments.of("malformed", "must be an object", "ap-1", "[]"),
                Arguments.of("malformed", "end-of-input", "ap-1", GOOD.substring(0, GOOD.length() - 1)),
                Arguments.of("malformed", "something follows", "ap-1", GOOD + " 1"),
                Arguments.of("malformed", "Duplicate field", "ap-1", GOOD.replace("{", "{\"who\":\"\",")),
                Arguments.of("malformed", "has no 'more'", "ap-1", GOOD.replace("{", "{\"more\":1,")),
                Arguments.of("malformed", "has no \"reason\"", "ap-1", GOOD.replace(",\"reason\":\"\"", "")),
                Arguments.of("malformed", "has no \"revoked_at_us\"", "ap-1", GOOD.replace("\"revoked_at_us\":5,", "")),
                Arguments.of("malformed", "\"who\" must be a string", "ap-1", GOOD.replace("\"ann\"", "7")),
                Arguments.of("malformed", "\"ap_id\" must be a string", "ap-1", GOOD.replace("\"ap-1\"", "null")),
                Arguments.of("malformed", "must be a whole number", "ap-1", GOOD.replace("5", "5.5")),
                Arguments.of("malformed", "must be a whole number", "ap-1", GOOD.replace("5", "\"5\"")),
                Arguments.of("value_range", "revoked_at_us is -1", "ap-1", GOOD.replace("5", "-1")),
                Arguments.of("value_range", "revoked_at_us is 9223372036854775807", "ap-1",
                        GOOD.replace("5", "9223372036854775807")),
                Arguments.of("value_range", "revoked_at_us is 9223372036854775808", "ap-1",
                        GOOD.replace("5", "9223372036854775808")),
                Arguments.of("oversized", "at most", "ap-1", " ".repeat(1048577)));
    }

    @ParameterizedTest
    @MethodSource("refused")
    void aBadRecordIsADeadLetterAndChangesNothing(String reason, String detail, String key, String value)
            throws Exception {
        byte[] bytes = value == null ? null : AccessRecords.bytes(value);
        harness.processElement(new StreamRecord<>(new JsonRecord(key, bytes, 9, 4, 7)));
        assertEquals(List.of(), changes());
        DeadLetter letter = harness.extractOutputValues().get(0);
        assertEquals(reason, letter.reason, letter.detail);
        assertTrue(letter.detail.contains(detail), letter.detail);
        assertEquals("ap.access.v1 4 7 " + key, letter.topic + " " + letter.partition + " " + letter.offset + " "
                + letter.key);
        assertArrayEquals(bytes == null ? new byte[0] : bytes, letter.value);
        harness.prepareSnapshotPreBarrier(1);
        Map<String, String> row = NativeReader.rows(SideOutput.of(harness, BlockOperator.ROWS), "dead_letter").get(0);
        assertEquals("ap.access.v1 " + reason, row.get("topic") + " " + row.get("reason"));
    }

    @Test
    void noBytesStopTheJob() throws Exception {
        Random random = new Random(5);
        for (int i = 0; i < 20_000; i++) {
            byte[] bad = AccessRecords.bytes(GOOD);
            for (int k = random.nextInt(4); k >= 0; k--) bad[random.nextInt(bad.length)] = (byte) random.nextInt(256);
            harness.processElement(new StreamRecord<>(new JsonRecord("ap-1", bad, 0, 0, i)));
        }
        harness.prepareSnapshotPreBarrier(1);
        int refused = NativeReader.rows(SideOutput.of(harness, BlockOperator.ROWS), "dead_letter").size();
        assertEquals(20_000, changes().size() + refused);
    }

    @Test
    void whatWasReadBeforeIsOldNewsWhenItComesAgain() {
        Revocations r = new Revocations();
        r.apply(new AccessChange("ap-1", 5, 0, 0));
        r.apply(new AccessChange("ap-1", AccessChange.NEVER, 0, 1));
        r.readTo(0, 2);
        r.apply(new AccessChange("ap-1", 5, 0, 0));
        assertEquals(AccessChange.NEVER, r.sinceUs("ap-1"));
        r.apply(new AccessChange("ap-2", 7, 1, 0)); // of another partition
        r.apply(new AccessChange("ap-1", 9, 0, 2));
        assertEquals("9 7 2", r.sinceUs("ap-1") + " " + r.sinceUs("ap-2") + " " + r.size());
    }
}
