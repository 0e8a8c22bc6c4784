package oal.stream.sink;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import oal.stream.block.RowBlock;
import oal.stream.local.LocalPlatform;

/**
 * The real ClickHouse server of platform/local/ with its users, on free loopback ports, one for all tests of this JVM
 * that need no other. A test may kill it; its process manager starts it again.
 */
public final class ClickHouseServer {
    private final Path directory;
    private final LocalPlatform platform;
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Map<String, String> env;
    private final String adminPassword;

    private static ClickHouseServer only;

    /** The server, running, with an empty database {@code oal}. */
    public static synchronized ClickHouseServer empty() throws IOException, InterruptedException {
        if (only == null) {
            only = new ClickHouseServer(Files.createTempDirectory("oal-clickhouse"));
            Runtime.getRuntime().addShutdownHook(new Thread(only::close));
        }
        only.start();
        only.clear();
        return only;
    }

    /** A server of the test's own, to be closed, with an empty database {@code oal}. */
    static ClickHouseServer in(Path directory) throws IOException, InterruptedException {
        ClickHouseServer server = new ClickHouseServer(directory);
        server.clear();
        return server;
    }

    /** Below a server's directory: where the tables are. */
    static Path data(Path directory) {
        return directory.resolve("clickhouse/data");
    }

    private void clear() throws IOException, InterruptedException {
        sql("DROP DATABASE IF EXISTS oal SYNC");
        sql("CREATE DATABASE oal");
    }

    private ClickHouseServer(Path directory) throws IOException, InterruptedException {
        this.directory = directory;
        platform = new LocalPlatform(directory);
        platform.run("up", "--only", "clickhouse", "--ports", "auto", "--no-migrate");
        env = platform.environment();
        adminPassword = Files.readString(Path.of(env.get("OAL_CLICKHOUSE_ADMIN_PASSWORD_FILE"))).strip();
    }

    /** kill -9; returns once a new server answers. */
    public void killAndRestart() throws IOException, InterruptedException {
        Path pidFile = directory.resolve("run/clickhouse.pid");
        long pid = Long.parseLong(Files.readString(pidFile).strip());
        ProcessHandle.of(pid).orElseThrow().destroyForcibly();
        while (Long.parseLong("0" + Files.readString(pidFile).strip()) == pid) Thread.sleep(10);
        platform.run("wait", "clickhouse");
    }

    /** Stays away until {@link #start()}. */
    public void stop() throws IOException, InterruptedException {
        platform.run("stop", "clickhouse");
    }

    public void start() throws IOException, InterruptedException {
        platform.run("start", "clickhouse");
        platform.run("wait", "clickhouse");
    }

    /** As the job uses it: with the rights of {@code ingest}. */
    public ClickHouseTarget target() {
        return new ClickHouseTarget(env.get("OAL_CLICKHOUSE_URL"), "oal", "ingest",
                env.get("OAL_CLICKHOUSE_INGEST_PASSWORD_FILE"), "", Duration.ofSeconds(30));
    }

    /** Runs a statement as admin; its answer as tab-separated text without the last line end. */
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
        HttpRequest request = HttpRequest.newBuilder(URI.create(env.get("OAL_CLICKHOUSE_URL") + "/"))
                .timeout(Duration.ofSeconds(60))
                .header("X-ClickHouse-User", "admin").header("X-ClickHouse-Key", adminPassword)
                        .POST(BodyPublishers.ofString(statement)).build();
        HttpResponse<byte[]> response = http.send(request, BodyHandlers.ofByteArray());
        if (response.statusCode() != 200) {
            throw new IOException(statement + ": " + new String(response.body(), StandardCharsets.UTF_8));
        }
        return response.body();
    }

    /** Stops the server and removes its directory. */
    void close() {
        try {
            platform.remove();
        } catch (IOException e) {
            System.err.println("the ClickHouse server in " + directory + " was not stopped: " + e);
        }
    }
}
