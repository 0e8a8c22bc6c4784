package oal.stream.policy;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import oal.schema.FeaturePrograms;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.stream.feature.ProgramFile;

/** Files of manifests for tests: rwnd-fair as it is, and others with programs of their own. */
public final class Manifests {
    private Manifests() {}

    /** rwnd-fair and policies of these names, each with a program of its own. */
    public static Policies with(String... names) {
        List<String> entries = new ArrayList<>(List.of(rwndFair()));
        for (String name : names) entries.add(entry(name, "congestion", backlog(1 + Math.abs(name.hashCode() % 20))));
        return Policies.of(file(entries.toArray(String[]::new)));
    }

    /** rwnd-fair and one about destinations, whose program is of sessions and whose label nobody here makes. */
    public static Policies withDestination() {
        return Policies.of(file(rwndFair(), ofDestination("hosts", 4711)));
    }

    /** A manifest about destinations. Its words are none that this job could compute: nothing reads them. */
    public static String ofDestination(String name, long hash) {
        return "{\"name\": \"" + name + "\", \"subject\": \"destination\", \"label\": \"session\", "
                + "\"decision_interval_us\": 1, \"feature_hash\": \"" + Long.toUnsignedString(hash)
                + "\", \"feature_names\": [\"cc\"], \"words\": [[99, 99, 0, -1, 0, 1, 1, 1, 1, 0, 1, 0]]}";
    }

    public static byte[] file(String... entries) {
        return ("{\"version\": [{}], \"policies\": [" + String.join(",\n", entries) + "]}")
                .getBytes(StandardCharsets.UTF_8);
    }

    public static String rwndFair() {
        return entry("rwnd-fair", "congestion", FeaturePrograms.CONGESTION.words());
    }

    /** The latest backlog of all stations, and its largest of so many intervals. */
    public static long[][] backlog(int window) {
        return new long[][] {feature(1, 1), feature(4, window)};
    }

    private static long[] feature(long op, long window) {
        return new long[] {op, Tables.STATION_AC.id(), Tables.StationAc.BACKLOG_BYTES, -1, 0, 1, window, 1, 1,
                Long.MIN_VALUE + 1, Long.MAX_VALUE, Long.MIN_VALUE};
    }

    public static String entry(String name, String label, long[][] words) {
        String[] features = IntStream.range(0, words.length).mapToObj(i -> "f" + i).toArray(String[]::new);
        byte[] hash = ProgramFile.program(name, Settings.DECISION_INTERVAL_US, words, features).hash();
        return "{\"name\": \"" + name + "\", \"law\": {\"name\": \"direct\", \"values\": [1]}, \"label\": \"" + label
                + "\", \"decision_interval_us\": " + Settings.DECISION_INTERVAL_US + ", \"feature_hash\": \""
                + Long.toUnsignedString(java.nio.ByteBuffer.wrap(hash).getLong()) + "\", \"feature_names\": "
                + Arrays.stream(features).map(f -> "\"" + f + "\"").collect(Collectors.joining(", ", "[", "]"))
                + ", \"words\": " + Arrays.deepToString(words) + "}";
    }
}
