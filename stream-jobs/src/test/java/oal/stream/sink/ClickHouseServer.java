package oal.stream.sink;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A real ClickHouse server on a free loopback port, which a test may kill and start again on the same data. */
public final class ClickHouseServer implements AutoCloseable {
    private static final Path ROOT = Path.of(System.getProperty("oal.root", "..")).toAbsolutePath().normalize();
    private static final Duration START_LIMIT = Duration.ofSeconds(90);
    private static final String PASSWORD = "only-for-this-test";

    private final Path directory = Files.createTempDirectory("oal-clickhouse");
    private final int port = freePort();
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Path python;
    private Process process;

    public ClickHouseServer() throws IOException, InterruptedException {
        python = environment();
        Files.writeString(directory.resolve("password"), PASSWORD + "\n");
        Files.writeString(directory.resolve("config.xml"), """
                <clickhouse>
                  <path>%1$s/data/</path><listen_host>127.0.0.1</listen_host><http_port>%2$d</http_port><tcp_port>%3$d</tcp_port>
                  <users_config>%1$s/users.xml</users_config>
                  <user_directories><users_xml><path>%1$s/users.xml</path></users_xml></user_directories><log-level>information</log-level>
                  <logger><level>information</level><log>%1$s/server.log</log></logger>
                </clickhouse>
                """.formatted(directory, port, freePort()));
        // The engine's own session is `default` without a password (see local/src/oal_local/clickhouse_server.py).
        Files.writeString(directory.resolve("users.xml"), """
                <clickhouse><profiles><default/></profiles><quotas><default/></quotas><users>
                  <default><no_password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
                  <writer><password>%s</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></writer>
                </users></clickhouse>
                """.formatted(PASSWORD));
        start();
    }

    /** Starts the server and waits until it answers. */
    public void start() throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(python.toString(), "-m", "oal_local.clickhouse_server", directory.toString())
                .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(directory.resolve("out.log").toFile()));
        builder.environment().put("PYTHONPATH", ROOT.resolve("local/src").toString());
        process = builder.start();
        long deadline = System.nanoTime() + START_LIMIT.toNanos();
        while (true) {
            try {
                if (sql("SELECT 1").equals("1")) return;
            } catch (IOException e) {
                if (!process.isAlive() || System.nanoTime() > deadline) {
                    throw new IOException("the ClickHouse server did not start:\n" + Files.readString(directory.resolve("out.log")), e);
                }
                Thread.sleep(50);
            }
        }
    }

    /** kill -9. */
    public void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    public ClickHouseTarget target(String database) {
        return new ClickHouseTarget("http://127.0.0.1:" + port, database, "writer", directory.resolve("password").toString(), "", Duration.ofSeconds(30));
    }

    /** Runs a statement; its answer as tab-separated text without the last line end. */
    public String sql(String statement) throws IOException, InterruptedException {
        return new String(bytes(statement), StandardCharsets.UTF_8).strip();
    }

    public long number(String query) throws IOException, InterruptedException {
        return Long.parseLong(sql(query));
    }

    /** The block of a query's result, as the server itself encodes it. */
    public RowBlock block(String table, int rows, String query) throws IOException, InterruptedException {
        return new RowBlock(table, rows, bytes(query + " FORMAT Native"));
    }

    private byte[] bytes(String statement) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/")).timeout(Duration.ofSeconds(60))
                .header("X-ClickHouse-User", "writer").header("X-ClickHouse-Key", PASSWORD).POST(BodyPublishers.ofString(statement)).build();
        HttpResponse<byte[]> response = http.send(request, BodyHandlers.ofByteArray());
        if (response.statusCode() != 200) throw new IOException(statement + ": " + new String(response.body(), StandardCharsets.UTF_8));
        return response.body();
    }

    @Override
    public void close() throws IOException, InterruptedException {
        kill();
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }

    /** Interpreter of the environment that local/ runs the server in. */
    private static Path environment() throws IOException, InterruptedException {
        Process setup = new ProcessBuilder(ROOT.resolve("local/venv.sh").toString(), ROOT.resolve("local/requirements.txt").toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String folder = new String(setup.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        if (!setup.waitFor(20, TimeUnit.MINUTES) || setup.exitValue() != 0) throw new IOException("local/venv.sh failed");
        return Path.of(folder, "bin", "python");
    }

    private static int freePort() {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
