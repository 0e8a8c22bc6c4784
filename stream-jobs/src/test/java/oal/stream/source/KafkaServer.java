package oal.stream.source;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import oal.stream.local.LocalPlatform;

/** The real Kafka of platform/local/ with its topics and rights, on free loopback ports. */
final class KafkaServer implements AutoCloseable {
    private final Path directory = Files.createTempDirectory("oal-kafka");
    private final LocalPlatform platform = new LocalPlatform(directory);
    private final String bootstrap;

    KafkaServer() throws IOException, InterruptedException {
        platform.run("up", "--only", "kafka", "--ports", "auto");
        bootstrap = platform.environment().get("OAL_KAFKA_BOOTSTRAP");
    }

    /** As the job or another service reaches it, with that service's rights. */
    KafkaClient client(String service) {
        Path pki = directory.resolve("pki");
        return new KafkaClient(Map.of("bootstrap.servers", bootstrap, "group.id", "oal-stream-jobs",
                "security.protocol", "SSL", "ssl.keystore.type", "PEM", "ssl.keystore.location",
                pki.resolve(service + ".pem").toString(), "ssl.truststore.type", "PEM", "ssl.truststore.location",
                pki.resolve("ca.crt").toString()));
    }

    @Override
    public void close() throws IOException {
        platform.remove();
    }
}
