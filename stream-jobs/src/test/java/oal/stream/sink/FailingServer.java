package oal.stream.sink;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Answers what the sink asks of ClickHouse: one kind of statement badly, the others well. It keeps what was asked. */
final class FailingServer implements AutoCloseable {
    /** Every kind of statement that the sink sends. */
    enum Statement {
        INSERT, ENGINE, COLUMNS, COUNT, REPAIR;

        static Statement of(String query) {
            if (query.startsWith("SELECT count()")) return COUNT;
            if (query.contains("system.tables")) return ENGINE;
            if (query.contains("system.columns")) return COLUMNS;
            return query.contains("NOT IN") ? REPAIR : INSERT;
        }
    }

    private final HttpServer http;
    final List<Map<String, String>> asked = Collections.synchronizedList(new ArrayList<>());
    /** Is the table one that several servers copy from each other? */
    volatile boolean copied;
    /** Null: every statement is answered well. */
    volatile Statement failing;
    /** HTTP status, and ClickHouse's code; 0: none. */
    volatile int status = 500;
    volatile int code;
    volatile String words = "Code: some error";

    FailingServer() throws IOException {
        http = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        http.createContext("/", this::answer);
        http.start();
    }

    ClickHouseTarget target() {
        return new ClickHouseTarget("http://127.0.0.1:" + http.getAddress().getPort(), "oal", "default", "", "",
                Duration.ofSeconds(30));
    }

    /** Statements in their order. */
    List<Statement> statements() {
        synchronized (asked) {
            return asked.stream().map(a -> Statement.of(a.get("query"))).toList();
        }
    }

    private void answer(HttpExchange exchange) throws IOException {
        exchange.getRequestBody().readAllBytes();
        Map<String, String> parameters = new LinkedHashMap<>();
        for (String pair : exchange.getRequestURI().getRawQuery().split("&")) {
            String[] of = pair.split("=", 2);
            parameters.put(of[0], URLDecoder.decode(of[1], StandardCharsets.UTF_8));
        }
        asked.add(parameters);
        Statement statement = Statement.of(parameters.get("query"));
        boolean bad = statement == failing;
        String said = bad ? words : switch (statement) {
            case INSERT, REPAIR -> "";
            case ENGINE -> copied ? "1" : "0";
            case COLUMNS -> "`n` UInt64";
            case COUNT -> "3";
        };
        if (bad && code > 0) exchange.getResponseHeaders().set("X-ClickHouse-Exception-Code", Integer.toString(code));
        byte[] body = said.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(bad ? status : 200, body.length == 0 ? -1 : body.length);
        if (body.length > 0) exchange.getResponseBody().write(body);
        exchange.close();
    }

    @Override
    public void close() {
        http.stop(0);
    }
}
