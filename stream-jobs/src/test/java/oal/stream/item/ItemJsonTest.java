package oal.stream.item;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import oal.schema.Settings;
import oal.stream.codec.Golden;
import org.junit.jupiter.api.Test;

/** Items as records are, byte for byte, those of the contract's golden vectors. */
class ItemJsonTest {
    private static final int AP_ID = 0;
    private static final int SITE = 1;
    private static final int TS_US = 2;
    private static final int BOOT_ID = 3;
    private static final int FEATURE_HASH = 4;
    private static final int HORIZON_US = 5;
    private static final int CLASS_NOW = 6;
    private static final int CLASS = 7;
    private static final int LOSS_RATIO = 8;
    private static final int OFFERED_PKTS = 9;
    private static final int COMPLETE = 10;
    private static final int FEATURES = 15;

    private static Item item(String[] values) {
        Item item = new Item();
        item.tsUs = Long.parseLong(values[TS_US]);
        item.bootId = Long.parseUnsignedLong(values[BOOT_ID]);
        item.features = new long[values.length - FEATURES];
        for (int i = 0; i < item.features.length; i++) item.features[i] = Long.parseLong(values[FEATURES + i]);
        item.classNow = Integer.parseInt(values[CLASS_NOW]);
        item.classThen = Integer.parseInt(values[CLASS]);
        item.lossRatio = Float.parseFloat(values[LOSS_RATIO]);
        item.offeredPkts = Long.parseLong(values[OFFERED_PKTS]);
        item.complete = values[COMPLETE].equals("1");
        item.permilleResent = Integer.parseInt(values[COMPLETE + 1]);
        item.permilleNowResent = Integer.parseInt(values[COMPLETE + 2]);
        item.sinceDropUs = Long.parseLong(values[COMPLETE + 3]);
        item.untilDropUs = Long.parseLong(values[COMPLETE + 4]);
        return item;
    }

    @Test
    void isTheGoldenRecord() throws Exception {
        List<String> meant = Golden.lines("items.txt").stream().map(line -> "rwnd-fair " + line).toList();
        assertTrue(meant.size() >= 4);
        assertAreWritten(meant, Golden.lines("items.jsonl"));
    }

    @Test
    void anotherPolicyIsNamed() throws Exception {
        List<String> meant = Golden.lines("items.policies.txt");
        assertTrue(meant.size() >= 2);
        assertAreWritten(meant, Golden.lines("items.policies.jsonl"));
    }

    @Test
    void lackedInputIsSaid() throws Exception {
        List<String> meant = Golden.lines("items.lacking.txt");
        assertTrue(meant.size() >= 2);
        assertAreWritten(meant, Golden.lines("items.lacking.jsonl"), true, false);
    }

    @Test
    void controlIsSaid() throws Exception {
        List<String> meant = Golden.lines("items.controlled.txt");
        assertTrue(meant.size() >= 2);
        assertAreWritten(meant, Golden.lines("items.controlled.jsonl"), false, true);
    }

    private static void assertAreWritten(List<String> meant, List<String> lines) {
        assertAreWritten(meant, lines, false, false);
    }

    private static void assertAreWritten(List<String> meant, List<String> lines, boolean lackedInput,
            boolean underControl) {
        assertEquals(meant.size(), lines.size());
        ItemJson json = new ItemJson(); // one for all: nothing of a record is left in the next
        for (int i = 0; i < lines.size(); i++) {
            String[] policyAndValues = meant.get(i).split(" ", 2);
            String policy = policyAndValues[0];
            String[] values = policyAndValues[1].split(" ");
            assertEquals(Settings.HORIZON_US, Long.parseLong(values[HORIZON_US]));
            String site = values[SITE].equals("-") ? "" : values[SITE];
            long program = Long.parseUnsignedLong(values[FEATURE_HASH]);
            Item item = item(values);
            item.lackedInput = lackedInput;
            item.underControl = underControl;
            TrainingItem made = json.of(values[AP_ID], site, policy, program, item);
            assertEquals(values[AP_ID], made.apId);
            assertEquals(lines.get(i), new String(made.json, StandardCharsets.UTF_8));
        }
    }

    /** Names that break out of a string, and a ratio of many digits, are still JSON. */
    @Test
    void escapesWhatJsonMust() {
        Item item = item("x s 1 0 0 200000 0 0 1.0E-4 4 1 0 0 -1 -1".split(" "));
        TrainingItem of = new ItemJson().of("a\"\\\n\u0001", "s", "rwnd-fair", -1, item);
        String made = new String(of.json, StandardCharsets.UTF_8);
        assertTrue(made.startsWith("{\"ap_id\":\"a\\\"\\\\\\n\\u0001\",\"site\":\"s\",\"ts_us\":1,\"boot_id\":0,"
                + "\"feature_hash\":18446744073709551615,\"features\":[],"), made);
        assertTrue(made.contains("\"loss_ratio\":1.0E-4,"), made);
    }
}
