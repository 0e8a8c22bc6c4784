package oal.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import oal.stream.policy.Manifests;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JobConfigTest {
    private static Properties enough() {
        Properties properties = new Properties();
        properties.setProperty("kafka.bootstrap.servers", "kafka:9094");
        properties.setProperty("clickhouse.url", "http://clickhouse:8123");
        return properties;
    }

    private static String refusal(String key, String value) {
        Properties properties = enough();
        properties.setProperty(key, value);
        return assertThrows(IllegalArgumentException.class, () -> StreamJob.of(JobConfig.of(properties))).getMessage();
    }

    @Test
    void defaultsAreAJob() {
        JobConfig config = JobConfig.of(enough());
        StreamJob.of(config);
        assertEquals("oal", config.text(Key.CLICKHOUSE_DATABASE));
        assertEquals("oal-stream-jobs", config.kafka().get("group.id"));
    }

    @Test
    void everythingBelowKafkaGoesToItsClients() {
        Properties properties = enough();
        properties.setProperty("kafka.ssl.keystore.location", " /pki/job.pem ");
        properties.setProperty("kafka.group.id", "oal-other");
        assertEquals("/pki/job.pem", JobConfig.of(properties).kafka().get("ssl.keystore.location"));
        assertEquals("oal-other", JobConfig.of(properties).kafka().get("group.id"));
    }

    @Test
    void whatIsWrongIsNamed() {
        assertTrue(refusal("clickhouse.pasword.file", "x").contains("clickhouse.pasword.file"));
        assertTrue(refusal("sink.parallelism", "two").contains("sink.parallelism must be a whole number, not 'two'"));
        assertTrue(refusal("sink.parallelism", "0").contains("sink.parallelism must be at least 1"));
        assertTrue(refusal("source.start", "middle").contains("source.start must be one of earliest, latest"));
        assertTrue(refusal("clickhouse.url", "clickhouse:8123").contains("clickhouse.url"));
        assertTrue(refusal("clickhouse.database", "oal; DROP").contains("clickhouse.database"));
        assertTrue(refusal("pipeline.raw.rows", "yes").contains("pipeline.raw.rows must be one of true, false"));
        assertTrue(refusal("pipeline.lateness.ms", "-1").contains("pipeline.lateness.ms must not be negative"));
        assertTrue(refusal("sink.insert.max.rows", "2000000").contains("sink.insert.max.rows"));
    }

    @Test
    void aFileOfPoliciesIsReadWhenTheJobStarts(@TempDir Path folder) throws IOException {
        Properties properties = enough();
        Path file = folder.resolve("policies.json");
        Files.write(file, Manifests.file(Manifests.rwndFair(),
                Manifests.entry("example", "congestion", Manifests.backlog(3))));
        properties.setProperty("policies.file", file.toString());
        StreamJob.of(JobConfig.of(properties));
        Files.write(file, Manifests.file(Manifests.rwndFair(),
                Manifests.entry("example", "mood", Manifests.backlog(3))));
        String said = refusal("policies.file", file.toString());
        assertTrue(said.contains(file.toString()) && said.contains("policy example: no label is called 'mood'")
                && said.contains("congestion"), said);
        Files.write(file, new byte[0]);
        assertTrue(refusal("policies.file", file.toString()).contains("it is empty"));
        assertTrue(refusal("policies.file", "/nowhere/policies.json").contains("cannot read /nowhere/policies.json"));
    }

    @Test
    void whatIsMissingIsNamed() {
        for (String key : new String[] {"kafka.bootstrap.servers", "clickhouse.url"}) {
            Properties properties = enough();
            properties.remove(key);
            String message = assertThrows(IllegalArgumentException.class, () -> StreamJob.of(JobConfig.of(properties)))
                    .getMessage();
            assertTrue(message.contains(key), message);
        }
        assertTrue(assertThrows(IOException.class, () -> JobConfig.read(Path.of("/nowhere/job.properties")))
                .getMessage().contains("/nowhere/job.properties"));
    }

    @Test
    void helpNamesEveryKey() {
        for (Key key : Key.values()) assertTrue(Main.help().contains("\n" + key.name + "\n"), key.name);
    }

    @Test
    void otherArgumentsAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> Main.main(new String[] {}));
        assertThrows(IllegalArgumentException.class, () -> Main.main(new String[] {"--config"}));
        assertThrows(IllegalArgumentException.class, () -> Main.main(new String[] {"--conf", "x"}));
    }
}
