package oal.stream.sink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import oal.stream.block.RowBlock;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.apache.flink.util.ExceptionUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The sink inside a Flink cluster that fails and a ClickHouse that is killed: every row once. */
@Tag("server")
class ClickHouseSinkTest {
    @RegisterExtension
    static final MiniClusterExtension CLUSTER = new MiniClusterExtension(
            new MiniClusterResourceConfiguration.Builder().setNumberTaskManagers(1).setNumberSlotsPerTaskManager(2)
                    .build());

    static final int BLOCKS = 3000;
    static final int ROWS_PER_BLOCK = 10;
    private static final int BLOCKS_PER_SECOND = 1000;
    private static final AtomicInteger FAILURES = new AtomicInteger();
    private static final AtomicInteger CHECKPOINTS = new AtomicInteger();

    private final ExecutorService background = Executors.newSingleThreadExecutor();
    private ClickHouseServer server;

    @BeforeEach
    void start() throws Exception {
        FAILURES.set(0);
        CHECKPOINTS.set(0);
        server = ClickHouseServer.empty();
        makeTables(server);
    }

    static void makeTables(ClickHouseServer server) throws Exception {
        server.sql("CREATE TABLE oal.n0 (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS "
                + "non_replicated_deduplication_window = 1000");
        server.sql("CREATE TABLE oal.n1 (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS "
                + "non_replicated_deduplication_window = 1000");
        // The repair compares by ts.
        for (String table : new String[] {"n0", "n1"}) {
            server.sql("ALTER TABLE oal." + table
                    + " ADD COLUMN ts DateTime64(6, 'UTC') DEFAULT fromUnixTimestamp64Micro(0)");
        }
    }

    @AfterEach
    void stop() {
        background.shutdownNow();
    }

    /** A Native block of consecutive numbers: columns, rows, then name, type and values of the one column. */
    private static RowBlock block(long index) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.write(1);
        bytes.write(ROWS_PER_BLOCK);
        for (String text : new String[] {"n", "UInt64"}) {
            bytes.write(text.length());
            bytes.writeBytes(text.getBytes(StandardCharsets.US_ASCII));
        }
        ByteBuffer values = ByteBuffer.allocate(8 * ROWS_PER_BLOCK).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < ROWS_PER_BLOCK; i++) values.putLong(index * ROWS_PER_BLOCK + i);
        bytes.writeBytes(values.array());
        return new RowBlock("n" + index % 2, ROWS_PER_BLOCK, bytes.toByteArray());
    }

    /** Throws a few times, each time some blocks after a checkpoint was completed. */
    private static final class Failing extends RichMapFunction<RowBlock, RowBlock> implements CheckpointListener {
        private final int failures;
        private int sinceCheckpoint = Integer.MIN_VALUE;

        Failing(int failures) {
            this.failures = failures;
        }

        @Override
        public RowBlock map(RowBlock block) {
            if (++sinceCheckpoint == 30 && FAILURES.get() < failures) {
                throw new IllegalStateException("failure number " + FAILURES.incrementAndGet());
            }
            return block;
        }

        @Override
        public void notifyCheckpointComplete(long id) {
            CHECKPOINTS.incrementAndGet();
            if (sinceCheckpoint < 0) sinceCheckpoint = 0;
        }
    }

    static Configuration configuration(int restarts) {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(150));
        configuration.set(PipelineOptions.OBJECT_REUSE, true);
        configuration.set(PipelineOptions.GENERIC_TYPES, false);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, restarts);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(50));
        return configuration;
    }

    static void run(ClickHouseServer server, int failures, Configuration configuration) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        env.setParallelism(2);
        GeneratorFunction<Long, RowBlock> blocks = ClickHouseSinkTest::block;
        env.fromSource(new DataGeneratorSource<>(blocks, BLOCKS, RateLimiterStrategy.perSecond(BLOCKS_PER_SECOND),
                TypeInformation.of(RowBlock.class)),
                        WatermarkStrategy.noWatermarks(), "blocks").uid("blocks")
                .map(new Failing(failures)).uid("failing")
                .sinkTo(new ClickHouseSink(server.target(), new SinkLimits(2000, 1000, 2))).uid("clickhouse");
        env.execute();
    }

    static void assertEveryRowOnce(ClickHouseServer server) throws Exception {
        long rows = (long) BLOCKS * ROWS_PER_BLOCK;
        assertEquals(rows + "\t" + rows + "\t0\t" + (rows - 1),
                server.sql("SELECT count(), uniqExact(n), min(n), max(n) FROM (SELECT n FROM oal.n0 UNION ALL SELECT n "
                        + "FROM oal.n1)"));
    }

    @Test
    void aJobThatFailsMidwayWritesEveryRowOnce() throws Exception {
        run(server, 3, configuration(10));
        assertEquals(3, FAILURES.get());
        assertTrue(CHECKPOINTS.get() > 3, "checkpoints completed: " + CHECKPOINTS);
        assertEveryRowOnce(server);
    }

    @Test
    void aJobThatFailsWhileClickHouseIsKilledWritesEveryRowOnce() throws Exception {
        Future<?> job = background.submit(() -> {
            run(server, 2, configuration(10));
            return null;
        });
        for (int kills = 1; kills <= 2; kills++) {
            while (server.number("SELECT count() FROM oal.n1") < kills * BLOCKS * ROWS_PER_BLOCK / 8) Thread.sleep(5);
            server.killAndRestart();
        }
        job.get(180, TimeUnit.SECONDS);
        assertEquals(2, FAILURES.get());
        assertEveryRowOnce(server);
    }

    @Test
    void aTableThatDoesNotFitFailsTheJobWithTheServersWords() throws Exception {
        server.sql("DROP TABLE oal.n1");
        Exception e = assertThrows(Exception.class, () -> run(server, 0, configuration(1)));
        InsertRefusedException refused = ExceptionUtils.findSerializedThrowable(e, InsertRefusedException.class,
                getClass().getClassLoader()).orElseThrow(() -> new AssertionError(e));
        assertTrue(refused.getMessage().contains("into n1") && refused.getMessage().contains("UNKNOWN_TABLE"),
                refused.getMessage());
    }
}
