package oal.stream.source;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** The real Kafka of platform/local/ with its topics and rights, on free loopback ports. */
final class KafkaServer implements AutoCloseable {
    private static final Path ROOT = Path.of(System.getProperty("oal.root", "..")).toAbsolutePath().normalize();
    private static final long LIMIT_S = 300;

    private final Path directory = Files.createTempDirectory("oal-kafka");
    private final String bootstrap;

    KafkaServer() throws IOException, InterruptedException {
        local("up", "--only", "kafka", "--ports", "auto");
        bootstrap = Stream.of(local("env").split("\n")).map(line -> line.replaceFirst("^export ", ""))
                .filter(line -> line.startsWith("OAL_KAFKA_BOOTSTRAP=")).findFirst().orElseThrow().split("=", 2)[1];
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
        try {
            local("down");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("the Kafka server in " + directory + " was not stopped", e);
        }
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }

    private String local(String command, String... arguments) throws IOException, InterruptedException {
        String program = ROOT.resolve("platform/local/oal-local").toString();
        List<String> line = new ArrayList<>(List.of(program, command, "--state", directory.toString()));
        line.addAll(List.of(arguments));
        Path log = directory.resolve("oal-local.log");
        Process process = new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .start();
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (!process.waitFor(LIMIT_S, TimeUnit.SECONDS) || process.exitValue() != 0) {
            throw new IOException(line + " failed:\n" + out + Files.readString(log));
        }
        return out;
    }
}
