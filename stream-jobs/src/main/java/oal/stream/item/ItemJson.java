package oal.stream.item;

import java.nio.charset.StandardCharsets;
import oal.schema.Settings;
import oal.stream.codec.JsonText;

/**
 * An item as one line of JSON, fields as ClickHouse's {@code item}: unsigned integers for boot_id and feature_hash, a
 * class as its index into class_names, a missing feature as -9223372036854775808.
 */
public final class ItemJson {
    private final StringBuilder text = new StringBuilder(1024);

    public TrainingItem of(String apId, String site, long featureHash, Item item) {
        text.setLength(0);
        text.append("{\"ap_id\":");
        JsonText.append(text, apId);
        text.append(",\"site\":");
        JsonText.append(text, site);
        text.append(",\"ts_us\":").append(item.tsUs);
        text.append(",\"boot_id\":").append(Long.toUnsignedString(item.bootId));
        text.append(",\"feature_hash\":").append(Long.toUnsignedString(featureHash));
        text.append(",\"features\":[");
        for (int i = 0; i < item.features.length; i++) {
            if (i > 0) text.append(',');
            text.append(item.features[i]);
        }
        text.append("],\"horizon_us\":").append(Settings.HORIZON_US);
        text.append(",\"class_now\":").append(item.classNow);
        text.append(",\"class\":").append(item.classThen);
        text.append(",\"loss_ratio\":").append(item.lossRatio);
        text.append(",\"offered_pkts\":").append(item.offeredPkts);
        text.append(",\"complete\":").append(item.complete);
        text.append('}');
        return new TrainingItem(apId, text.toString().getBytes(StandardCharsets.UTF_8));
    }
}
