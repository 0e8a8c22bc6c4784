package oal.stream.platform;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Records of {@code platform.events.v1} as services write them. */
public final class PlatformRecords {
    public static final long TS_US = 1_800_000_000_000_000L;

    /** Column → its JSON. */
    public static final Map<String, String> ROLLOUT = columns("ts", TS_US, "rollout", "\"r-1\"", "slot", "\"canary\"",
            "scope", "\"fleet\"", "bundle", "9223372036854775807", "step", "\"started\"",
            "aps", 10, "applied", 4294967295L, "rejected", 1, "metric", "\"\"", "value", "0.25", "limit", "null",
                    "detail", "\"a \\\"word\\\" ✓\"");

    static final Map<String, String> SENDER_TCP = columns("ts", TS_US, "host", "\"server\"", "flow_id",
            "18446744073709551615", "server_port", 443, "client_port", 40000,
            "congestion_control", "\"cubic\"", "state", 1, "cwnd_bytes", 14480, "ssthresh_bytes", 4294967295L,
                    "mss_bytes", 1448, "unacked_pkts", 7, "rtt_us", 12000, "min_rtt_us", 4000,
            "delivery_rate_bps", 10, "pacing_rate_bps", "18446744073709551615", "bytes_acked", 5, "retrans_pkts", 0,
                    "lost_pkts", 0, "clock_offset_us", -17, "clock_offset_error_us", 3);

    private PlatformRecords() {}

    static Map<String, String> columns(Object... namesAndValues) {
        Map<String, String> row = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            row.put((String) namesAndValues[i], namesAndValues[i + 1].toString());
        }
        return row;
    }

    /** A row with some columns changed; null leaves one out. */
    static Map<String, String> with(Map<String, String> row, String... changes) {
        Map<String, String> changed = new LinkedHashMap<>(row);
        for (int i = 0; i < changes.length; i += 2) {
            if (changes[i + 1] == null) changed.remove(changes[i]);
            else changed.put(changes[i], changes[i + 1]);
        }
        return changed;
    }

    public static byte[] json(String table, Map<String, String> row) {
        return json(table, List.of(row));
    }

    static byte[] json(String table, List<Map<String, String>> rows) {
        String all = rows.stream().map(r -> r.entrySet().stream().map(e -> "\"" + e.getKey() + "\": " + e.getValue())
                .collect(Collectors.joining(", ", "{", "}"))).collect(Collectors.joining(","));
        return ("{\"table\": \"" + table + "\", \"rows\": [" + all + "]}").getBytes(StandardCharsets.UTF_8);
    }
}
