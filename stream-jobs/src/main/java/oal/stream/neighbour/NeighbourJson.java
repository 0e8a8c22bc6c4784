package oal.stream.neighbour;

import java.nio.charset.StandardCharsets;
import java.util.List;
import oal.stream.codec.JsonText;

/**
 * Access points of a channel as JSON: its site and frequency, the broker's time in µs, and who is there, the busiest
 * first.
 */
final class NeighbourJson {
    private NeighbourJson() {}

    /** @param aps of one channel, at least one */
    static byte[] of(long nowMs, List<ApSecond> aps) {
        StringBuilder text = new StringBuilder(200 * aps.size());
        text.append("{\"site\":");
        JsonText.append(text, aps.get(0).site);
        text.append(",\"frequency_mhz\":").append(aps.get(0).frequencyMhz);
        text.append(",\"t_us\":").append(nowMs * 1000);
        text.append(",\"aps\":[");
        for (ApSecond ap : aps) {
            if (text.charAt(text.length() - 1) != '[') text.append(',');
            text.append("{\"ap_id\":");
            JsonText.append(text, ap.apId);
            text.append(",\"stations\":").append(ap.stations);
            text.append(",\"tx_kbps\":").append(ap.txKbps);
            text.append(",\"tx_airtime_permille\":").append(ap.txAirtimePermille);
            text.append(",\"busy_permille\":").append(ap.busyPermille);
            text.append(",\"loss_permille\":").append(ap.lossPermille);
            text.append(",\"backlog_bytes\":").append(ap.backlogBytes);
            text.append('}');
        }
        return text.append("]}").toString().getBytes(StandardCharsets.UTF_8);
    }
}
