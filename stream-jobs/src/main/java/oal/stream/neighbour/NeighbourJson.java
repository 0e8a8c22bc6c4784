package oal.stream.neighbour;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.util.List;
import oal.stream.codec.JsonBytes;

/**
 * Access points of a channel as JSON: its site and frequency, the broker's time in µs, and who is there, the busiest
 * first.
 */
final class NeighbourJson {
    private NeighbourJson() {}

    /** @param aps of one channel, at least one */
    static byte[] of(long nowMs, List<ApSecond> aps) {
        return JsonBytes.of(json -> {
            json.writeStartObject();
            json.writeStringField("site", aps.get(0).site);
            json.writeNumberField("frequency_mhz", aps.get(0).frequencyMhz);
            json.writeNumberField("t_us", nowMs * 1000);
            json.writeArrayFieldStart("aps");
            for (ApSecond ap : aps) write(json, ap);
            json.writeEndArray();
            json.writeEndObject();
        });
    }

    private static void write(JsonGenerator json, ApSecond ap) throws IOException {
        json.writeStartObject();
        json.writeStringField("ap_id", ap.apId);
        json.writeNumberField("stations", ap.stations);
        json.writeNumberField("tx_kbps", ap.txKbps);
        json.writeNumberField("tx_airtime_permille", ap.txAirtimePermille);
        json.writeNumberField("busy_permille", ap.busyPermille);
        json.writeNumberField("loss_permille", ap.lossPermille);
        json.writeNumberField("backlog_bytes", ap.backlogBytes);
        json.writeEndObject();
    }
}
