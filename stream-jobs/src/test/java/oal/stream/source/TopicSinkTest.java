package oal.stream.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import oal.stream.item.TrainingItem;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The exactly-once sinks against a real broker, with the job's own rights. */
@Tag("server")
class TopicSinkTest {
    @RegisterExtension
    static final MiniClusterExtension CLUSTER = new MiniClusterExtension(
            new MiniClusterResourceConfiguration.Builder().setNumberTaskManagers(1).setNumberSlotsPerTaskManager(1)
                    .build());

    private static final int CHECKPOINTS_WANTED = 60;
    /** One being filled, one being committed, and one more after each restart. */
    private static final int IDS = 8;
    private static final AtomicInteger CHECKPOINTS = new AtomicInteger();
    private static final AtomicInteger FAILURES = new AtomicInteger();

    private static TrainingItem item(long n) {
        TrainingItem item = new TrainingItem();
        item.apId = "ap-" + n % 3;
        item.json = Long.toString(n).getBytes(StandardCharsets.UTF_8);
        return item;
    }

    /** Fails twice, so that what an earlier run left open is listed and aborted; ends after enough checkpoints. */
    private static final class Failing extends RichMapFunction<TrainingItem, TrainingItem>
            implements CheckpointListener {
        private static final long serialVersionUID = 1;

        @Override
        public TrainingItem map(TrainingItem item) {
            if (CHECKPOINTS.get() > CHECKPOINTS_WANTED * (FAILURES.get() + 1) / 3 && FAILURES.get() < 2) {
                throw new IllegalStateException("failure number " + FAILURES.incrementAndGet());
            }
            return item;
        }

        @Override
        public void notifyCheckpointComplete(long id) {
            CHECKPOINTS.incrementAndGet();
        }
    }

    private static KafkaServer server;

    @BeforeAll
    static void start() throws Exception {
        server = new KafkaServer();
    }

    @AfterAll
    static void stop() throws Exception {
        server.close();
    }

    private static void ask(KafkaEnds ends) throws InterruptedException {
        ends.refresh(System.currentTimeMillis());
        Thread.sleep(20);
    }

    @Test
    @Timeout(value = 300, unit = TimeUnit.SECONDS)
    void theBrokerSaysHowFarAPartitionGoes() throws Exception {
        TopicPartition samples = new TopicPartition("ap.samples.v1", 0);
        TopicPartition packets = new TopicPartition("ap.packets.v1", 1);
        String id = KafkaPartitionSplit.toSplitId(samples);
        long from = System.currentTimeMillis();
        try (KafkaEnds ends = new KafkaEnds(server.client("stream-jobs"), true);
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(server.client("admin").producer(),
                        new ByteArraySerializer(), new ByteArraySerializer())) {
            ends.watch(List.of(new KafkaPartitionSplit(samples, KafkaPartitionSplit.COMMITTED_OFFSET),
                    new KafkaPartitionSplit(packets, 7)));
            assertNull(ends.end(id), "not known yet");
            while (ends.end(id) == null || ends.start(id) < 0) ask(ends);
            assertEquals(0, ends.end(id).offset());
            assertEquals(0, ends.start(id), "the group has read nothing there");
            assertEquals(7, ends.start(KafkaPartitionSplit.toSplitId(packets)));
            assertTrue(ends.end(id).askedMs() >= from && ends.answeredMs() >= ends.end(id).askedMs());
            producer.send(new ProducerRecord<>("ap.samples.v1", 0, null, new byte[] {1})).get();
            while (ends.end(id).offset() == 0) ask(ends);
            assertEquals(1, ends.end(id).offset());
        }
    }

    @Test
    @Timeout(value = 300, unit = TimeUnit.SECONDS)
    void manyCheckpointsUseFewTransactionalIds() throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(20));
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 2);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(20));
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        env.setParallelism(1);
        GeneratorFunction<Long, TrainingItem> items = TopicSinkTest::item;
        env.fromSource(new DataGeneratorSource<>(items, Long.MAX_VALUE, RateLimiterStrategy.perSecond(500),
                TypeInformation.of(TrainingItem.class)), WatermarkStrategy.noWatermarks(), "items").uid("items")
                .map(new Failing()).uid("failing")
                .sinkTo(TopicSink.items(server.client("stream-jobs"), "oal-stream-jobs")).uid("sink");
        var job = env.executeAsync();
        while (CHECKPOINTS.get() < CHECKPOINTS_WANTED) {
            assertTrue(!job.getJobStatus().get().isGloballyTerminalState(), "the job ended");
            Thread.sleep(20);
        }
        job.cancel().get();
        assertEquals(2, FAILURES.get());
        try (Admin admin = Admin.create(server.client("admin").producer())) {
            Collection<TransactionListing> listed = admin.listTransactions().all().get();
            List<String> ids = listed.stream().map(TransactionListing::transactionalId).sorted().toList();
            assertTrue(ids.size() <= IDS && !ids.isEmpty(), ids.size() + " ids after " + CHECKPOINTS
                    + " checkpoints: " + ids);
            System.out.println("transactional ids after " + CHECKPOINTS + " checkpoints: " + ids);
        }
    }
}
