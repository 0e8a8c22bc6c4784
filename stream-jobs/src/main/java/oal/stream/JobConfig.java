package oal.stream;

import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;

/** The job's properties file: every key that there is, its default and its meaning are in {@link Key}. */
public final class JobConfig {
    /** Options of Kafka's clients are given with this in front of their names. */
    static final String KAFKA = "kafka.";

    private final Map<String, String> values;

    private JobConfig(Map<String, String> values) {
        this.values = values;
    }

    public static JobConfig read(Path file) throws IOException {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
            properties.load(reader);
        } catch (IOException | IllegalArgumentException e) {
            throw new IOException("cannot read the configuration " + file + ": " + e, e);
        }
        return of(properties);
    }

    public static JobConfig of(Properties properties) {
        Map<String, String> values = new TreeMap<>();
        TreeSet<String> unknown = new TreeSet<>();
        for (String name : properties.stringPropertyNames()) {
            if (name.startsWith(KAFKA) || Key.find(name) != null) values.put(name, properties.getProperty(name)
                    .strip());
            else unknown.add(name);
        }
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException("the job does not know the keys " + unknown
                    + "; `--help` lists those it knows");
        }
        for (Key key : Key.values()) {
            if (values.containsKey(key.name)) continue;
            if (key.byDefault == null) {
                throw new IllegalArgumentException("the configuration lacks " + key.name + ": " + key.meaning);
            }
            values.put(key.name, key.byDefault);
        }
        return new JobConfig(values);
    }

    public String text(Key key) {
        return values.get(key.name);
    }

    public long number(Key key) {
        try {
            return Long.parseLong(text(key));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(key.name + " must be a whole number, not '" + text(key) + "'", e);
        }
    }

    public int count(Key key) {
        long value = number(key);
        if (value < 1 || value > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(key.name + " must be at least 1, not " + value);
        }
        return (int) value;
    }

    public Duration millis(Key key) {
        long value = number(key);
        if (value < 0) throw new IllegalArgumentException(key.name + " must not be negative: " + value);
        return Duration.ofMillis(value);
    }

    /** One of the given words. */
    public String word(Key key, String... words) {
        for (String word : words) if (word.equals(text(key))) return word;
        throw new IllegalArgumentException(key.name + " must be one of " + String.join(", ", words) + ", not '"
                + text(key) + "'");
    }

    /** Kafka's client options, without the prefix. */
    public Map<String, String> kafka() {
        Map<String, String> options = new TreeMap<>();
        options.put("group.id", "oal-stream-jobs");
        values.forEach((name, value) -> {
            if (name.startsWith(KAFKA)) options.put(name.substring(KAFKA.length()), value);
        });
        return options;
    }
}
