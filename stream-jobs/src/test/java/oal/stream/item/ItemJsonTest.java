package oal.stream.item;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class ItemJsonTest {
    @Test
    void isOneLineOfJson() {
        Item item = new Item();
        item.tsUs = 1;
        item.bootId = -1;
        item.features = new long[] {0, Long.MIN_VALUE, 7};
        item.classNow = 2;
        item.classThen = 3;
        item.lossRatio = 0.5f;
        item.offeredPkts = 4;
        TrainingItem t = new ItemJson().of("a\"p\\\n", "sité", -2, item);
        assertEquals("a\"p\\\n", t.apId);
        assertEquals("{\"ap_id\":\"a\\\"p\\\\\\u000a\",\"site\":\"sité\",\"ts_us\":1"
                + ",\"boot_id\":18446744073709551615,\"feature_hash\":18446744073709551614,"
                + "\"features\":[0,-9223372036854775808,7],\"horizon_us\":200000,\"class_now\":2,\"class\":3"
                + ",\"loss_ratio\":0.5,\"offered_pkts\":4,\"complete\":false}",
                new String(t.json, StandardCharsets.UTF_8));
    }
}
