package oal.stream.sink;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.UUID;
import java.util.stream.Collectors;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import net.jpountz.lz4.LZ4FrameInputStream;
import oal.schema.ClickHouseColumn;
import oal.schema.TableSpec;
import oal.schema.Tables;
import oal.stream.block.JsonForm;

/**
 * Inserts over ClickHouse's HTTP interface. One attempt per call; the caller decides whether to repeat it. Safe for
 * several threads.
 */
final class ClickHouseClient {
    static {
        // The server closes idle connections after 30 s (keep_alive_timeout); a pooled one must not outlive that.
        if (System.getProperty("jdk.httpclient.keepalive.timeout") == null) {
            System.setProperty("jdk.httpclient.keepalive.timeout", "20");
        }
    }

    /** In a cluster, after the database's name: the one of each server's own rows (clickhouse/migrate). */
    private static final String SHARE = "_shard";

    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(5);

    private final ClickHouseTarget target;
    private final HttpClient http;

    ClickHouseClient(ClickHouseTarget target) throws IOException {
        this.target = target;
        HttpClient.Builder builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(CONNECT_TIMEOUT);
        if (!target.caFile().isEmpty()) builder.sslContext(trusting(Path.of(target.caFile())));
        http = builder.build();
    }

    /**
     * Sends an insert. Repeating it with the same token adds nothing where the first one arrived, neither to the table
     * nor to the targets of its materialised views, provided the tables keep a deduplication window.
     */
    void insert(Insert insert) throws IOException, InterruptedException {
        Map<String, String> settings = insertSettings(insert.token());
        TableSpec renamed = storedElsewhere(insert.table());
        if (renamed != null) {
            settings.put("query", "INSERT INTO " + into(insert) + " FROM sent");
            String structure = renamed.clickhouse().stream().map(c -> "`" + c.name() + "` " + c.type())
                    .collect(Collectors.joining(", "));
            send(withTable(settings, structure, insert.body()), insert.toString(), false);
            return;
        }
        settings.put("query", "INSERT INTO " + table(insert) + " FORMAT Native");
        HttpRequest.Builder request = request(settings).header("Content-Encoding", "lz4")
                .POST(BodyPublishers.ofByteArray(insert.body()));
        send(request, insert.toString(), false);
    }

    /**
     * Adds the rows of an insert that the table lacks, comparing whole rows, and returns their number.
     *
     * <p>Needed after a kill -9 of the server. The server writes a block's token to its deduplication log just before
     * it publishes the block's part. If it is killed in between, it answers the repeated insert with success and drops
     * it. Its rollup has them as a rule, since the repeated insert reaches views with tokens of their own, and what is
     * added here reaches them again under another: ClickHouse has no insert that leaves views out.
     *
     * <p>A table that several servers hold copies of has no such gap, and is not compared: its tokens are in Keeper, in
     * one transaction with the part that they belong to, so an insert repeated at any copy is there or is added. A copy
     * that lags lacks rows that others have, and comparing with it would add them a second time.
     */
    long addMissing(Insert insert) throws IOException, InterruptedException {
        if (copied(insert)) return 0;
        String table = table(insert);
        String structure = structure(table);
        // Parts are missing as a whole, so a row that is in the insert twice is in the table twice or not at all.
        // Without columns that have a default of their own: these came with a migration, and an insert that a
        // checkpoint of before promised lacks them.
        String compared = columns(table, "concat('`', name, '`')", " AND default_expression = ''");
        String hash = "sipHash128(tuple(" + compared + "))";
        // The range is for the partitions and the index; the set keeps out the hashes of rows that merely lie between,
        // which may be millions when one access point's clock is days behind.
        String lacking = " FROM sent WHERE " + hash + " NOT IN (SELECT " + hash + " FROM " + table
                + " WHERE ts >= (SELECT min(ts) FROM sent) AND ts <= (SELECT max(ts) FROM sent) AND ts IN (SELECT ts "
                        + "FROM sent))";

        Map<String, String> count = new LinkedHashMap<>();
        count.put("query", "SELECT count()" + lacking);
        count.put("wait_end_of_query", "1");
        String what = "count of missing rows of " + insert;
        long missing = number(send(withTable(count, structure, insert.body()), what, true), what);
        if (missing == 0) return 0;

        Map<String, String> settings = insertSettings(insert.token() + "-again");
        settings.put("query", "INSERT INTO " + into(insert) + lacking);
        send(withTable(settings, structure, insert.body()), "repair of " + insert, true);
        return missing;
    }

    /** Do servers copy the rows of the insert's table from each other? In a cluster each holds a share of them. */
    private boolean copied(Insert insert) throws IOException, InterruptedException {
        TableSpec renamed = storedElsewhere(insert.table());
        String query = "SELECT countIf(startsWith(engine, 'Replicated')) FROM system.tables WHERE name = '"
                + (renamed == null ? JsonForm.table(insert.table()) : renamed.storedAs())
                + "' AND database IN ('" + target.database()
                + "', '" + target.database() + SHARE + "')";
        HttpRequest.Builder request = request(Map.of("query", query, "wait_end_of_query", "1"))
                .POST(BodyPublishers.noBody());
        String what = "engine of " + insert.table();
        return number(send(request, what, true), what) > 0;
    }

    private long number(String answer, String what) throws InsertUncertainException {
        if (answer.matches("[0-9]{1,18}")) return Long.parseLong(answer);
        throw new InsertUncertainException("ClickHouse at " + target.url() + " answered the " + what + " with '"
                + answer + "', which is no number", true, null);
    }

    private String table(Insert insert) {
        return target.database() + "." + JsonForm.table(insert.table());
    }

    /**
     * The table that takes an insert's rows, with a SELECT of its columns: rows of {@code rewrite} go to action. What
     * the insert does not have of a table that others fill, too, gets the table's default.
     */
    private String into(Insert insert) {
        TableSpec renamed = storedElsewhere(insert.table());
        List<ClickHouseColumn> some = JsonForm.columns(insert.table());
        if (some != null) return table(insert) + " (" + names(some) + ") SELECT " + names(some);
        if (renamed == null) return table(insert) + " SELECT *";
        return target.database() + "." + renamed.storedAs() + " (" + names(renamed.stored()) + ") SELECT "
                + names(renamed.clickhouse());
    }

    /** The table of that name if its rows are stored in another one, of which it is a view; else null. */
    private static TableSpec storedElsewhere(String table) {
        for (TableSpec t : Tables.ALL) if (t.name().equals(table) && !t.storedAs().equals(table)) return t;
        return null;
    }

    private static String names(List<ClickHouseColumn> columns) {
        return columns.stream().map(c -> "`" + c.name() + "`").collect(Collectors.joining(", "));
    }

    private static Map<String, String> insertSettings(String token) {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("insert_deduplication_token", token);
        settings.put("insert_deduplicate", "1");
        settings.put("deduplicate_blocks_in_dependent_materialized_views", "1");
        // The server's default since version 26 would combine inserts, and tokens with them.
        settings.put("async_insert", "0");
        // One block per insert: a token names the insert's blocks by their number.
        settings.put("min_insert_block_size_rows", "1000000000");
        settings.put("min_insert_block_size_bytes", "0");
        settings.put("max_insert_threads", "1");
        settings.put("input_format_skip_unknown_fields", "0");
        settings.put("wait_end_of_query", "1");
        return settings;
    }

    /** Column list as {@code name type, …}, without what ClickHouse computes itself. */
    private String structure(String table) throws IOException, InterruptedException {
        return columns(table, "concat('`', name, '` ', type)", "");
    }

    /** Of the columns that an insert fills, in their order and with commas between, what {@code each} says. */
    private String columns(String table, String each, String which) throws IOException, InterruptedException {
        String query = "SELECT arrayStringConcat(groupArray(" + each + "), ', ') FROM (SELECT name, type FROM"
                + " system.columns WHERE concat(database, '.', table) = '" + table
                + "' AND default_kind NOT IN ('MATERIALIZED', 'ALIAS', 'EPHEMERAL')" + which
                + " ORDER BY position) FORMAT TSVRaw";
        HttpRequest.Builder request = request(Map.of("query", query, "wait_end_of_query", "1"))
                .POST(BodyPublishers.noBody());
        String structure = send(request, "columns of " + table, true);
        if (structure.isEmpty()) {
            throw new InsertRefusedException("ClickHouse has no table " + table + " at " + target.url()
                    + ": run the migrations");
        }
        return structure;
    }

    /** A statement that sees the rows of an insert as the temporary table {@code sent}. */
    private HttpRequest.Builder withTable(Map<String, String> parameters, String structure, byte[] lz4)
            throws IOException {
        Map<String, String> all = new LinkedHashMap<>(parameters);
        all.put("sent_format", "Native");
        all.put("sent_structure", structure);
        String boundary = "oal-" + UUID.randomUUID();
        String head = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"sent\"; filename=\"sent\"\r\n"
                + "Content-Type: application/octet-stream\r\n\r\n";
        return request(all).header("Content-Type", "multipart/form-data; boundary=" + boundary)
                .POST(BodyPublishers.concat(BodyPublishers.ofString(head),
                        BodyPublishers.ofInputStream(() -> unpacked(lz4)),
                        BodyPublishers.ofString("\r\n--" + boundary + "--\r\n")));
    }

    private static InputStream unpacked(byte[] lz4) {
        try {
            return new LZ4FrameInputStream(new ByteArrayInputStream(lz4));
        } catch (IOException e) {
            throw new UncheckedIOException("an insert of the checkpoint is no LZ4 frame", e);
        }
    }

    private HttpRequest.Builder request(Map<String, String> parameters) throws IOException {
        StringJoiner query = new StringJoiner("&", target.url() + "/?", "");
        parameters.forEach((name, value) -> query.add(name + "=" + URLEncoder.encode(value, StandardCharsets.UTF_8)));
        return HttpRequest.newBuilder(URI.create(query.toString()))
                .timeout(target.requestTimeout())
                .header("X-ClickHouse-User", target.user())
                .header("X-ClickHouse-Key", target.password());
    }

    /** @param readsTable whether the statement reads rows that are stored */
    private String send(HttpRequest.Builder request, String what, boolean readsTable)
            throws IOException, InterruptedException {
        HttpResponse<String> response;
        try {
            response = http.send(request.build(), BodyHandlers.ofString());
        } catch (ConnectException | HttpConnectTimeoutException e) {
            throw new InsertUncertainException("no connection to ClickHouse at " + target.url() + " for the " + what,
                    false, e);
        } catch (IOException e) {
            throw new InsertUncertainException("ClickHouse at " + target.url() + " did not answer the " + what + ": "
                    + e, true, e);
        }
        String words = response.body().strip();
        int code = response.headers().firstValue("X-ClickHouse-Exception-Code").filter(c -> c.matches("[0-9]{1,9}"))
                .map(Integer::parseInt).orElse(0);
        if (response.statusCode() == 200 && code == 0) return words;
        String message = "ClickHouse at " + target.url() + " answered the " + what + " with HTTP "
                + response.statusCode()
                + (code == 0 ? "" : ", error " + code) + ": " + words;
        // Without a code it is not ClickHouse that answers, but a proxy before it: that passes.
        if (Refusals.isPermanent(code, readsTable)) throw new InsertRefusedException(message);
        // An error may come after a part of the insert's partitions was published.
        throw new InsertUncertainException(message, true, null);
    }

    private static SSLContext trusting(Path caFile) throws IOException {
        try (InputStream in = Files.newInputStream(caFile)) {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            int n = 0;
            for (Certificate authority : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                store.setCertificateEntry("ca" + n++, authority);
            }
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            return context;
        } catch (IOException | GeneralSecurityException e) {
            throw new IOException("cannot use the certificates in " + caFile + " (clickhouse.ca.file)", e);
        }
    }
}
