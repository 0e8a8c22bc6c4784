package oal.stream.sink;

import java.io.IOException;
import java.io.Serializable;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/**
 * Where and how rows are inserted.
 *
 * @param url HTTP(S) address of the server, without a path
 * @param database database of every table
 * @param user user that may insert
 * @param passwordFile file that holds the password, read anew for each connection attempt after a refusal; empty: no
 *     password
 * @param caFile PEM file with the authority that signed the server's certificate; empty: the JVM's
 * @param requestTimeout how long one insert may take before it counts as lost and is repeated
 */
public record ClickHouseTarget(
        String url, String database, String user, String passwordFile, String caFile, Duration requestTimeout)
                implements Serializable {

    public ClickHouseTarget {
        URI uri = URI.create(url);
        if (uri.getHost() == null || !("http".equals(uri.getScheme()) || "https".equals(uri.getScheme()))) {
            throw new IllegalArgumentException("clickhouse.url must be http://HOST:PORT or https://HOST:PORT, not '"
                    + url + "'");
        }
        if (!Identifiers.isPlain(database)) {
            throw new IllegalArgumentException("clickhouse.database is not a plain name: '" + database + "'");
        }
        if (requestTimeout.isNegative() || requestTimeout.isZero()) {
            throw new IllegalArgumentException("clickhouse.request.timeout.ms must be positive");
        }
        while (url.endsWith("/")) url = url.substring(0, url.length() - 1);
    }

    /** The password that is in the file now, without the line end. */
    String password() throws IOException {
        if (passwordFile.isEmpty()) return "";
        try {
            return Files.readString(Path.of(passwordFile)).strip();
        } catch (IOException e) {
            throw new IOException("cannot read the ClickHouse password from " + passwordFile
                    + " (clickhouse.password.file)", e);
        }
    }
}
