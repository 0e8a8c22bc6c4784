package oal.stream.sink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** ClickHouse's disk is full for a while: the job waits, and then every row is there once. */
@Tag("server")
class DiskFullTest {
    @RegisterExtension
    static final MiniClusterExtension CLUSTER = new MiniClusterExtension(
            new MiniClusterResourceConfiguration.Builder().setNumberTaskManagers(1).setNumberSlotsPerTaskManager(2)
                    .build());

    private static final int DISK_MIB = 64;
    /** ClickHouse reserves this much for each part before it writes it. */
    private static final long PART_BYTES = 1 << 20;
    private static final long LIMIT_S = 180;

    private final ExecutorService background = Executors.newSingleThreadExecutor();
    private SmallDisk disk;
    private ClickHouseServer server;

    @BeforeEach
    void start() throws Exception {
        Path directory = Files.createTempDirectory("oal-clickhouse");
        disk = new SmallDisk(ClickHouseServer.data(directory), DISK_MIB);
        server = ClickHouseServer.in(directory);
    }

    @AfterEach
    void stop() throws Exception {
        background.shutdownNow();
        disk.free();
        disk.unmount();
        server.close();
    }

    /** Inserts that the server failed to write. */
    private long refusals() throws Exception {
        return server.number("SELECT sum(value) FROM system.errors WHERE name = 'NOT_ENOUGH_SPACE'");
    }

    /** Answers that a part cannot be read. */
    private long unreadable() throws Exception {
        return server.number("SELECT sum(value) FROM system.errors WHERE code IN (27, 33, 246)");
    }

    /**
     * Waits for the end of what writes. A merge or an insert on the full disk may have left a part that ClickHouse
     * cannot read: then it is restarted, as docs/troubleshoot.md says.
     */
    private void await(Future<?> writing) throws Exception {
        long before = unreadable();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        while (true) {
            try {
                writing.get(1, TimeUnit.SECONDS);
                return;
            } catch (TimeoutException e) {
                if (System.nanoTime() > deadline) throw e;
                if (unreadable() < before + 2) continue;
                server.stop();
                server.start();
                before = unreadable(); // the counts are of the process
            }
        }
    }

    /**
     * Restarts the server if a merge left a part with files that were cut off: it then takes the parts that were
     * merged. Such a part might be read without an error, and with fewer rows than it has.
     */
    private void restartIfBroken(String... tables) throws Exception {
        for (String table : tables) {
            String parts = server.sql("CHECK TABLE oal." + table + " SETTINGS check_query_single_value_result = 0");
            if (parts.lines().allMatch(part -> part.split("\t")[1].equals("1"))) continue;
            System.err.println("DiskFullTest: a part of " + table + " is broken: " + parts);
            server.stop();
            server.start();
            return;
        }
    }

    /** Each time the space is enough for more of the tables, days and rollups. */
    @Test
    void insertsAndRepairsWaitForSpaceAndAreThereOnce() throws Exception {
        InsertCommitterTest.makeTables(server);
        int rounds = 20;
        int waited = 0;
        List<List<Insert>> all = new ArrayList<>();
        for (int i = 0; i < rounds; i++) all.add(InsertCommitterTest.inserts(server, i));
        try (InsertCommitter committer = InsertCommitterTest.committer(server, OptionalLong.empty())) {
            for (int i = 0; i < rounds; i++) {
                disk.fill(i * 192L * 1024);
                List<Insert> inserts = all.get(i);
                Future<?> committing = background.submit(() -> {
                    committer.commit(InsertCommitterTest.requests(inserts));
                    return null;
                });
                while (committer.waiting() == 0 && !committing.isDone()) Thread.onSpinWait();
                if (!committing.isDone()) waited++;
                disk.free();
                await(committing);
            }
        }
        assertTrue(waited >= 5, "the disk was full for " + waited + " of " + rounds);
        assertTrue(refusals() >= waited, refusals() + " refusals for lack of space");
        InsertCommitterTest.assertExactly(server, rounds);
        repair(all);
        InsertCommitterTest.assertExactly(server, rounds);
    }

    /** A day of one table is gone: its rows are counted as missing on a full disk, and added once there is space. */
    private void repair(List<List<Insert>> all) throws Exception {
        for (String gone : List.of("a DELETE WHERE toDate(ts)", "sums DELETE WHERE day")) {
            server.sql("ALTER TABLE oal." + gone + " = '2026-05-01' SETTINGS mutations_sync = 1");
        }
        ClickHouseClient client = new ClickHouseClient(server.target());
        disk.fill(PART_BYTES / 2); // enough for answers, which the server keeps in a file until it sends them
        for (Insert insert : all.get(0)) {
            if (!insert.table().equals("a")) continue;
            InsertUncertainException e = assertThrows(InsertUncertainException.class, () -> client.addMissing(insert));
            assertTrue(e.mayHaveArrived && e.getMessage().contains("repair of"), e.getMessage());
        }
        disk.free();
        long added = 0;
        for (List<Insert> round : all) for (Insert insert : round) added += client.addMissing(insert);
        assertTrue(added > 0, "nothing was missing");
        for (List<Insert> round : all) for (Insert insert : round) assertEquals(0, client.addMissing(insert));
    }

    @Test
    void aJobWaitsForSpaceAndWritesEveryRowOnce() throws Exception {
        ClickHouseSinkTest.makeTables(server);
        Future<?> job = background.submit(() -> {
            ClickHouseSinkTest.run(server, 0, ClickHouseSinkTest.configuration(0)); // a restart would fail it
            return null;
        });
        while (server.number(
                "SELECT count() FROM oal.n1") < ClickHouseSinkTest.BLOCKS * ClickHouseSinkTest.ROWS_PER_BLOCK / 8) {
            Thread.sleep(5);
        }
        disk.fill(PART_BYTES * 7 / 8); // no new part begins; those that have begun can be written
        long before = refusals();
        while (refusals() < before + 5) {
            assertFalse(job.isDone(), "the job ended while the disk was full");
            Thread.sleep(20);
        }
        disk.free();
        await(job);
        restartIfBroken("n0", "n1");
        ClickHouseSinkTest.assertEveryRowOnce(server);
    }
}
