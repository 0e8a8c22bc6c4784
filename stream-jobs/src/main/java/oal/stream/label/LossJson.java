package oal.stream.label;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import oal.stream.codec.JsonBytes;

/** Losses as JSON objects with the names of {@code loss_event}'s columns; times in µs since 1970. */
public final class LossJson {
    private static final String[] CAUSES = {"unknown", "queue", "air", "both"};
    private static final String[] COUNTERS = {"none", "txq", "qdisc"};
    private static final String[] STAMPS = {"first sight", "counter"};

    private LossJson() {}

    /** UTF-8. */
    public static byte[] of(String apId, Loss l) {
        return JsonBytes.of(json -> {
            json.writeStartObject();
            json.writeStringField("ap_id", apId);
            json.writeNumberField("ts", l.droppedUs);
            json.writeStringField("flow_id", Long.toUnsignedString(l.flowId));
            json.writeNumberField("station_mac", l.stationMac);
            json.writeNumberField("seen", l.seenUs);
            json.writeNumberField("resent", l.resentUs);
            json.writeNumberField("seq", l.seq);
            json.writeNumberField("pkts", l.pkts);
            json.writeNumberField("bytes", l.bytes);
            json.writeStringField("cause", CAUSES[l.cause]);
            json.writeStringField("stamped_by", STAMPS[l.stampedBy]);
            json.writeStringField("queue_counter", COUNTERS[l.queueCounter]);
            count(json, "queue_drop_pkts", l.queueDropPkts);
            count(json, "mac_failed_pkts", l.macFailedPkts);
            json.writeNumberField("congestion", l.congestion() ? 1 : 0);
            json.writeEndObject();
        });
    }

    private static void count(JsonGenerator json, String name, long value)
            throws IOException {
        if (value == Loss.ABSENT) json.writeNullField(name);
        else json.writeNumberField(name, value);
    }
}
