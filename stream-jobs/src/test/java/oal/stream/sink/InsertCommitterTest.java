package oal.stream.sink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.flink.api.connector.sink2.Committer.CommitRequest;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Inserts of several checkpoints into a real server that is killed, absent, or does not want them. */
@Tag("server")
class InsertCommitterTest {
    static final int ROWS = 500;
    private static final long LIMIT_S = 180;

    private final ExecutorService background = Executors.newSingleThreadExecutor();
    private ClickHouseServer server;

    @BeforeEach
    void start() throws Exception {
        server = ClickHouseServer.empty();
        makeTables(server);
    }

    static void makeTables(ClickHouseServer server) throws Exception {
        for (String table : List.of("a", "b")) {
            server.sql("CREATE TABLE oal." + table
                    + " (ts DateTime64(6, 'UTC'), n UInt64) ENGINE = MergeTree PARTITION BY toDate(ts) ORDER BY ts"
                    + " SETTINGS non_replicated_deduplication_window = 1000");
        }
        server.sql("CREATE TABLE oal.sums (day Date, n UInt64) ENGINE = SummingMergeTree ORDER BY day SETTINGS "
                + "non_replicated_deduplication_window = 1000");
        server.sql("CREATE MATERIALIZED VIEW oal.to_sums TO oal.sums AS SELECT toDate(ts) AS day, count() AS n FROM "
                + "oal.a GROUP BY day");
    }

    @AfterEach
    void stop() {
        background.shutdownNow();
    }

    private InsertCommitter committer(OptionalLong restored) throws Exception {
        return committer(server, restored);
    }

    static InsertCommitter committer(ClickHouseServer server, OptionalLong restored) throws Exception {
        return new InsertCommitter(server.target(), SinkLimits.DEFAULT, restored, new UnregisteredMetricsGroup());
    }

    /** Inserts of one checkpoint into both tables, their rows over two days. */
    private List<Insert> inserts(int checkpoint) throws Exception {
        return inserts(server, checkpoint);
    }

    static List<Insert> inserts(ClickHouseServer server, int checkpoint) throws Exception {
        InsertWriter writer = new InsertWriter(SinkLimits.DEFAULT, 0, OptionalLong.empty(),
                new UnregisteredMetricsGroup());
        for (String table : List.of("a", "b")) {
            writer.write(server.block(table, ROWS,
                    "SELECT toDateTime64('2026-05-01 00:00:00', 6, 'UTC') + 200 * number AS ts,"
                    + " toUInt64(" + checkpoint + " * " + ROWS + " + number) AS n FROM numbers(" + ROWS + ")"), null);
        }
        return new ArrayList<>(writer.prepareCommit());
    }

    static Collection<CommitRequest<Insert>> requests(List<Insert> inserts) {
        List<CommitRequest<Insert>> requests = new ArrayList<>();
        for (Insert insert : inserts) requests.add(new Request(insert));
        return requests;
    }

    private void assertExactly(int checkpoints) throws Exception {
        assertExactly(server, checkpoints);
    }

    static void assertExactly(ClickHouseServer server, int checkpoints) throws Exception {
        assertRowsExactly(server, checkpoints);
        assertEquals((long) checkpoints * ROWS, server.number("SELECT sum(n) FROM oal.sums"), "rollup");
    }

    private static void assertRowsExactly(ClickHouseServer server, int checkpoints) throws Exception {
        for (String table : List.of("a", "b")) {
            assertEquals((long) checkpoints * ROWS + "\t" + (long) checkpoints * ROWS,
                    server.sql("SELECT count(), uniqExact(n) FROM oal." + table), "rows and distinct rows of " + table);
        }
    }

    /**
     * Rows of parts that were lost between token and publication may reach the rollup twice: see the client's
     * {@code addMissing}. Each kill falls among {@code ahead} commits that nothing holds back, so that none comes
     * after the last one.
     */
    @Test
    void aServerKilledAgainAndAgainHoldsEveryRowOnce() throws Exception {
        int checkpoints = 60;
        int kills = 3;
        int ahead = checkpoints / (kills + 1);
        List<List<Insert>> all = new ArrayList<>();
        for (int i = 0; i < checkpoints; i++) all.add(inserts(i));
        Semaphore allowed = new Semaphore(0);
        Future<Long> committing = background.submit(() -> {
            try (InsertCommitter committer = committer(OptionalLong.empty())) {
                for (List<Insert> one : all) {
                    allowed.acquire();
                    committer.commit(requests(one));
                }
                return committer.repaired();
            }
        });
        for (int kill = 0; kill < kills; kill++) {
            allowed.release(ahead);
            while (server.number("SELECT count() FROM oal.b") < (kill * ahead + 3L) * ROWS) {
                assertFalse(committing.isDone(), "ended before it was allowed to");
            }
            server.killAndRestart();
        }
        allowed.release(checkpoints);
        long repaired = committing.get(LIMIT_S, TimeUnit.SECONDS);
        assertRowsExactly(server, checkpoints);
        long twice = server.number("SELECT sum(n) FROM oal.sums") - (long) checkpoints * ROWS;
        assertTrue(0 <= twice && twice <= repaired, twice + " rows twice in the rollup, " + repaired + " repaired");
    }

    @Test
    void whatComesBackFromACheckpointIsCheckedAgainstTheTable() throws Exception {
        List<Insert> inserts = inserts(0);
        try (InsertCommitter first = committer(OptionalLong.empty())) {
            first.commit(requests(inserts));
        }
        server.sql("ALTER TABLE oal.a DELETE WHERE toDate(ts) = '2026-05-01' SETTINGS mutations_sync = 1");
        server.sql("ALTER TABLE oal.sums DELETE WHERE day = '2026-05-01' SETTINGS mutations_sync = 1");
        try (InsertCommitter restored = committer(OptionalLong.of(12))) {
            restored.commit(requests(inserts));
        }
        assertExactly(1);
    }

    /**
     * A part that cannot be read, as one half-written on a full disk: the server keeps it among the others until it
     * starts again. The sink waits, alarmed, and does not guess which rows it held; once it is gone, they are added.
     */
    @Test
    void aBrokenPartHoldsUpWhatMustBeComparedUntilSomebodyTakesItAway() throws Exception {
        List<Insert> inserts = inserts(0);
        try (InsertCommitter first = committer(OptionalLong.empty())) {
            first.commit(requests(inserts));
        }
        String[] part = server.sql("SELECT name, path FROM system.parts WHERE database = 'oal' AND table = 'b'"
                + " AND active ORDER BY name LIMIT 1").split("\t");
        Files.write(Path.of(part[1], "data.bin"), new byte[0]);
        server.sql("SYSTEM DROP MARK CACHE");
        server.sql("SYSTEM DROP UNCOMPRESSED CACHE");
        try (InsertCommitter restored = committer(OptionalLong.of(12))) {
            Future<?> committing = background.submit(() -> {
                restored.commit(requests(inserts));
                return null;
            });
            while (restored.waiting() == 0) assertFalse(committing.isDone(), "the part was not read");
            server.sql("ALTER TABLE oal.b DETACH PART '" + part[0] + "'");
            committing.get(LIMIT_S, TimeUnit.SECONDS);
        }
        assertExactly(1);
    }

    @Test
    void anAbsentServerHoldsTheJobUpAndLosesNothing() throws Exception {
        List<Insert> inserts = inserts(0);
        server.stop();
        InsertCommitter committer = committer(OptionalLong.empty());
        Future<?> committing = background.submit(() -> {
            committer.commit(requests(inserts));
            return null;
        });
        while (committer.waiting() < inserts.size()) assertFalse(committing.isDone());
        server.start();
        committing.get(LIMIT_S, TimeUnit.SECONDS);
        assertEquals(0, committer.waiting());
        assertExactly(1);
        committer.close();
    }

    @Test
    void aCancelledTaskDoesNotWaitForAnAbsentServer() throws Exception {
        List<Insert> inserts = inserts(0);
        server.stop();
        InsertCommitter committer = committer(OptionalLong.empty());
        AtomicReference<Thread> task = new AtomicReference<>();
        Future<?> committing = background.submit(() -> {
            task.set(Thread.currentThread());
            committer.commit(requests(inserts));
            return null;
        });
        while (committer.waiting() < inserts.size()) assertFalse(committing.isDone());
        task.get().interrupt();
        Throwable e = assertThrows(ExecutionException.class, () -> committing.get(LIMIT_S, TimeUnit.SECONDS))
                .getCause();
        assertInstanceOf(InterruptedException.class, e);
        committer.close();
    }

    @Test
    void aTableThatDoesNotFitFailsTheJobWithTheTablesName() throws Exception {
        List<Insert> inserts = inserts(0);
        server.sql("ALTER TABLE oal.b RENAME COLUMN n TO m");
        try (InsertCommitter committer = committer(OptionalLong.empty())) {
            Future<?> committing = background.submit(() -> {
                committer.commit(requests(inserts));
                return null;
            });
            Throwable e = assertThrows(ExecutionException.class, () -> committing.get(LIMIT_S, TimeUnit.SECONDS))
                    .getCause();
            assertInstanceOf(InsertRefusedException.class, e);
            assertTrue(e.getMessage().contains("into b") && e.getMessage().contains("DB::Exception"), e.getMessage());
        }
        server.sql("ALTER TABLE oal.b RENAME COLUMN m TO n");
        try (InsertCommitter committer = committer(OptionalLong.of(3))) {
            committer.commit(requests(inserts));
        }
        assertExactly(1);
    }

    /** What Flink hands to a committer. The committer under test answers by returning or throwing only. */
    private record Request(Insert insert) implements CommitRequest<Insert> {
        @Override
        public Insert getCommittable() {
            return insert;
        }

        @Override
        public int getNumberOfRetries() {
            return 0;
        }

        @Override
        public void signalFailedWithKnownReason(Throwable t) {
            throw new AssertionError("an insert was given up", t);
        }

        @Override
        public void signalFailedWithUnknownReason(Throwable t) {
            throw new AssertionError("an insert was given up", t);
        }

        @Override
        public void retryLater() {
            throw new AssertionError("Flink gives up after a few of these");
        }

        @Override
        public void updateAndRetryLater(Insert changed) {
            throw new AssertionError("Flink gives up after a few of these");
        }

        @Override
        public void signalAlreadyCommitted() {}
    }
}
