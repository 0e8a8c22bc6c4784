package oal.stream.access;

import java.nio.charset.StandardCharsets;
import oal.stream.codec.JsonRecord;

/** Records of {@code ap.access.v1} as the push service writes them. */
public final class AccessRecords {
    private AccessRecords() {}

    public static JsonRecord revoked(String apId, long revokedAtUs, long offset) {
        return new JsonRecord(apId, bytes("{\"ap_id\":\"" + apId + "\",\"revoked_at_us\":" + revokedAtUs
                + ",\"who\":\"ann\",\"reason\":\"stolen\"}"), 0, 0, offset);
    }

    public static JsonRecord restored(String apId, long offset) {
        return new JsonRecord(apId, null, 0, 0, offset);
    }

    static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }
}
