package oal.stream.label;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import oal.stream.capture.CaptureItems;
import oal.stream.codec.Capture;
import org.junit.jupiter.api.Test;

/** Causes of the losses of a capture of the lab, against the counters that the lab's kernel had for itself. */
class LossTruthTest {
    @Test
    void causesAreThoseOfTheKernelsOwnCounters() throws Exception {
        Path capture = Capture.committed().stream().filter(f -> f.endsWith("congested.oalcap")).findFirst()
                .orElseThrow();
        ObjectMapper json = new ObjectMapper();
        JsonNode truth = json.readTree(capture.resolveSibling("congested.truth.json").toFile());
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        assertEquals(0, CaptureItems.run(List.of("--losses", capture.toString()), out,
                new PrintStream(OutputStream.nullOutputStream())));
        Map<String, Map<String, Integer>> segments = new TreeMap<>();
        Map<String, Integer> all = new TreeMap<>();
        for (String line : out.toString(StandardCharsets.UTF_8).split("\n")) {
            JsonNode loss = json.readTree(line);
            String mac = String.format("%012x", loss.get("station_mac").asLong()).replaceAll("..(?!$)", "$0:");
            String cause = loss.get("cause").asText();
            segments.computeIfAbsent(mac, m -> new TreeMap<>()).merge(cause, loss.get("pkts").asInt(), Integer::sum);
            all.merge(cause, loss.get("pkts").asInt(), Integer::sum);
            assertTrue(loss.get("seen").asLong() <= loss.get("ts").asLong());
            assertTrue(loss.get("ts").asLong() <= loss.get("resent").asLong());
        }
        System.err.println("congested: " + all + " segments lost; truth: queue " + truth.get("queue_drops") + ", air "
                + truth.get("mac_failures") + ", sent again " + truth.get("down_retrans_segs"));
        int drops = truth.get("queue_drops").asInt();
        assertEquals(drops, all.get("queue"), 0.05 * drops, "queue");
        int losses = all.values().stream().mapToInt(n -> n).sum();
        assertEquals(drops + truth.get("mac_failures").asInt(), losses, 0.05 * losses, "in all");
        assertTrue(all.get("unknown") <= 0.02 * losses, "unknown");
        assertTrue(all.getOrDefault("both", 0) <= 0.002 * losses, "what both may have lost is rare: times tell");
        segments.forEach((mac, of) -> {
            int failed = truth.get("end").get("stations").get(mac).get("msdu_failed").asInt();
            assertEquals(failed, of.getOrDefault("air", 0), 0.1 * failed, mac + of);
        });
    }
}
