package oal.stream.sink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import oal.stream.block.RowBlock;
import oal.stream.sink.FailingServer.Statement;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every statement of the sink meets every kind of error: only what can never pass fails the job. */
class RefusalsTest {
    /**
     * What a half-written part on a full disk gives (6, 9, 27, 32, 33, 117, 131, 246), a full disk or memory (243, 241,
     * 196), a server that is starting, busy or unreachable (159, 209, 210, 236, 242, 252, 279, 285, 394, 999), and a
     * code that nobody has heard of.
     */
    private static final int[] PASSING = {6, 9, 27, 32, 33, 117, 131, 159, 196, 209, 210, 236, 241, 242, 243, 246, 252,
        279, 285, 394, 999, 12345};
    private static final int[] FINAL = {8, 16, 20, 53, 60, 62, 81, 117, 192, 193, 349, 497, 516, 691};

    private FailingServer server;
    private ClickHouseClient client;

    @BeforeEach
    void start() throws Exception {
        server = new FailingServer();
        client = new ClickHouseClient(server.target());
    }

    @AfterEach
    void stop() {
        server.close();
    }

    private static Insert insert() throws Exception {
        InsertWriter writer = new InsertWriter(SinkLimits.DEFAULT, 0, OptionalLong.empty(),
                new UnregisteredMetricsGroup());
        writer.write(new RowBlock("a", 3, new byte[24]), null);
        return writer.prepareCommit().iterator().next();
    }

    /** As the committer sends an insert after a doubt. */
    private void send() throws IOException, InterruptedException {
        try {
            Insert insert = insert();
            client.insert(insert);
            client.addMissing(insert);
        } catch (IOException | InterruptedException e) {
            throw e;
        } catch (Exception e) {
            throw new AssertionError("what is tried again is an IOException", e);
        }
    }

    private void fail(Statement statement, int status, int code, String words) {
        server.failing = statement;
        server.status = status;
        server.code = code;
        server.words = words;
    }

    @ParameterizedTest
    @EnumSource
    void whatPassesIsTriedAgain(Statement statement) throws Exception {
        for (int code : PASSING) {
            if (statement == Statement.INSERT && code == 117) continue; // its own blocks are wrong
            fail(statement, 500, code, "Code: " + code + ". DB::Exception");
            InsertUncertainException e = assertThrows(InsertUncertainException.class, this::send, "code " + code);
            assertTrue(e.mayHaveArrived && e.getMessage().contains("error " + code), e.getMessage());
        }
        // Answers that are not ClickHouse's: of a proxy whose server is away.
        for (int status : new int[] {400, 403, 404, 408, 413, 429, 500, 502, 503, 504}) {
            fail(statement, status, 0, "<html>");
            assertThrows(InsertUncertainException.class, this::send, "HTTP " + status);
        }
        server.failing = null;
        send();
    }

    @ParameterizedTest
    @EnumSource
    void whatCanNeverPassIsFinal(Statement statement) {
        for (int code : FINAL) {
            if (statement != Statement.INSERT && code == 117) continue; // a part of the table cannot be read
            fail(statement, 500, code, "Code: " + code + ". DB::Exception");
            InsertRefusedException e = assertThrows(InsertRefusedException.class, this::send, "code " + code);
            assertTrue(e.getMessage().contains("error " + code), e.getMessage());
        }
    }

    /** A copy that lags lacks rows that others have: comparing with it would add them again. The token is in Keeper. */
    @Test
    void whatServersCopyFromEachOtherIsRepeatedAndNotCompared() throws Exception {
        server.copied = true;
        try (InsertCommitter restored = new InsertCommitter(server.target(), SinkLimits.DEFAULT, OptionalLong.of(12),
                new UnregisteredMetricsGroup())) {
            restored.commit(InsertCommitterTest.requests(List.of(insert())));
        }
        assertEquals(List.of(Statement.INSERT, Statement.ENGINE), server.statements());
        server.asked.clear();
        server.copied = false;
        send();
        assertEquals(List.of(Statement.INSERT, Statement.ENGINE, Statement.COLUMNS, Statement.COLUMNS, Statement.COUNT,
                Statement.REPAIR), server.statements(), "a single server's rows are compared, but for defaults");
    }

    /** HTTP 200 and then an exception in the body: the server had begun to answer. */
    @Test
    void aCountThatIsNoNumberIsTriedAgain() {
        for (String words : List.of("", "Code: 33. DB::Exception: Cannot read all data", "1\nCode: 33")) {
            for (Statement asked : List.of(Statement.COUNT, Statement.ENGINE)) {
                fail(asked, 200, 0, words);
                assertThrows(InsertUncertainException.class, this::send, words);
            }
        }
    }

    @Test
    void anErrorThatLastsIsMeasuredSinceItBegan() throws Exception {
        AtomicLong nanos = new AtomicLong(5);
        ExecutorService background = Executors.newSingleThreadExecutor();
        fail(Statement.INSERT, 500, 33, "Code: 33");
        try (InsertCommitter committer = new InsertCommitter(server.target(), SinkLimits.DEFAULT, OptionalLong.empty(),
                new UnregisteredMetricsGroup(), nanos::get)) {
            assertEquals(0, committer.retryingSeconds());
            Future<?> committing = background.submit(() -> {
                committer.commit(InsertCommitterTest.requests(List.of(insert())));
                return null;
            });
            while (committer.waiting() == 0) Thread.sleep(5);
            nanos.addAndGet(TimeUnit.SECONDS.toNanos(130));
            assertEquals(130, committer.retryingSeconds());
            server.failing = null;
            committing.get(60, TimeUnit.SECONDS);
            assertEquals(0, committer.retryingSeconds());
        } finally {
            background.shutdownNow();
        }
    }
}
