package oal.stream;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RawBatch;
import oal.stream.operator.PipelineSettings;
import oal.stream.pipeline.ApPipeline;
import oal.stream.pipeline.BrokerTime;
import oal.stream.pipeline.Inputs;
import oal.stream.pipeline.Sinks;
import oal.stream.policy.Policies;
import oal.stream.sink.ClickHouseSink;
import oal.stream.sink.ClickHouseTarget;
import oal.stream.sink.SinkLimits;
import oal.stream.source.AccessTopic;
import oal.stream.source.KafkaClient;
import oal.stream.source.TopicSink;
import oal.stream.source.TopicSource;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExternalizedCheckpointRetention;
import org.apache.flink.configuration.HighAvailabilityOptions;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The job with its real sources and sinks, configured by the properties file. It is one graph, so that one checkpoint
 * covers everything.
 */
final class StreamJob {
    private static final Logger LOG = LoggerFactory.getLogger(StreamJob.class);

    static final String NAME = "oal-stream-jobs";
    static final int NEW_MAX_PARALLELISM = 720;

    private final KafkaClient kafka;
    private final ClickHouseTarget clickhouse;
    private final SinkLimits limits;
    private final PipelineSettings pipeline;
    private final Policies policies;
    private final String transactions;
    private final boolean fromEarliest;
    private final Duration discovery;
    private final Duration idle;
    private final Duration drift;
    private final long heldBytes;
    private final int sinkParallelism;
    /** 0: as {@link #maxParallelism(Configuration, ReadableConfig)} finds. */
    private final int maxParallelism;
    /** Null: the cluster's. */
    private final Duration checkpointInterval;

    private StreamJob(JobConfig config) {
        kafka = new KafkaClient(config.kafka());
        clickhouse = new ClickHouseTarget(
                config.text(Key.CLICKHOUSE_URL), config.text(Key.CLICKHOUSE_DATABASE), config.text(Key.CLICKHOUSE_USER),
                config.text(Key.CLICKHOUSE_PASSWORD_FILE), config.text(Key.CLICKHOUSE_CA_FILE),
                        config.millis(Key.CLICKHOUSE_REQUEST_TIMEOUT));
        limits = new SinkLimits(config.number(Key.SINK_INSERT_MAX_BYTES), config.count(Key.SINK_INSERT_MAX_ROWS),
                config.count(Key.SINK_INSERT_THREADS));
        heldBytes = config.number(Key.SINK_HELD_MAX_BYTES);
        pipeline = new PipelineSettings(config.millis(Key.LATENESS), config.millis(Key.STATE_TTL),
                config.millis(Key.FLUSH),
                config.count(Key.BLOCK_ROWS), config.count(Key.BLOCK_BYTES),
                        "true".equals(config.word(Key.RAW_ROWS, "true", "false")), PipelineSettings.MOST_WAITING,
                        config.text(Key.MAC_KEYS));
        policies = policies(config.text(Key.POLICIES));
        transactions = config.text(Key.SINK_TRANSACTIONS);
        fromEarliest = "earliest".equals(config.word(Key.SOURCE_START, "earliest", "latest"));
        discovery = config.millis(Key.SOURCE_DISCOVERY);
        idle = config.millis(Key.SOURCE_IDLE);
        drift = config.millis(Key.SOURCE_DRIFT);
        sinkParallelism = config.count(Key.SINK_PARALLELISM);
        maxParallelism = config.text(Key.MAX_PARALLELISM).isEmpty() ? 0 : config.count(Key.MAX_PARALLELISM);
        checkpointInterval = config.text(Key.CHECKPOINT_INTERVAL).isEmpty() ? null
                : Duration.ofMillis(config.count(Key.CHECKPOINT_INTERVAL));
    }

    private static Policies policies(String file) {
        if (file.isEmpty()) return Policies.packed();
        try {
            byte[] manifests = Files.readAllBytes(Path.of(file));
            if (manifests.length == 0) throw new IllegalArgumentException("it is empty");
            return Policies.of(manifests);
        } catch (IOException e) {
            throw new IllegalArgumentException("policies.file: cannot read " + file + ": " + e, e);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("policies.file " + file + ": " + e.getMessage(), e);
        }
    }

    static StreamJob of(JobConfig config) {
        return new StreamJob(config);
    }

    void execute() throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.configure(settings(env.getConfiguration()));
        if (pipeline.macKeysFile().isEmpty()) {
            LOG.warn("mac.keys.file is not given: which access point made a batch is not checked");
        }
        ApPipeline.configure(env);
        define(env);
        env.execute(NAME);
    }

    void define(StreamExecutionEnvironment env) {
        TopicSource topics = new TopicSource(kafka, fromEarliest, discovery);
        DataStream<RawBatch> batches = env.fromSource(topics.batches(idle, heldBytes), BrokerTime.aligned(drift),
                "kafka: batches").uid("batches");
        // Rows without windows need no watermarks.
        DataStream<JsonRecord> platform = env.fromSource(topics.platformEvents(), WatermarkStrategy.noWatermarks(),
                "kafka: platform events").uid("platform-source");
        // There are a few records a year; nothing waits for their watermark.
        DataStream<JsonRecord> access = env.fromSource(topics.access(), WatermarkStrategy.noWatermarks(),
                "kafka: access").uid("access-source").setParallelism(1);
        ApPipeline.define(new Inputs(batches, platform, access, new AccessTopic(kafka)), new Sinks(
                new ClickHouseSink(clickhouse, limits), TopicSink.items(kafka, transactions),
                        TopicSink.deadLetters(kafka, transactions), TopicSink.neighbours(kafka, transactions),
                        sinkParallelism), pipeline, policies);
    }

    /** Settings that the job needs from Flink. A cluster's own setting is kept where the job can work with it. */
    Configuration settings(ReadableConfig cluster) {
        Configuration settings = new Configuration();
        // An operator without a uid would lose its state in the next release.
        settings.set(PipelineOptions.AUTO_GENERATE_UIDS, false);
        maxParallelism(settings, cluster);
        if (checkpointInterval != null) settings.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, checkpointInterval);
        else byDefault(settings, cluster, CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofSeconds(1));
        byDefault(settings, cluster, CheckpointingOptions.EXTERNALIZED_CHECKPOINT_RETENTION,
                ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION);
        // While ClickHouse or Kafka is away, checkpoints time out; the job must not fail because of that.
        byDefault(settings, cluster, CheckpointingOptions.TOLERABLE_FAILURE_NUMBER, Integer.MAX_VALUE);
        if (cluster.getOptional(RestartStrategyOptions.RESTART_STRATEGY).isEmpty()) {
            // Restarts are unlimited: without a TaskManager every attempt fails at once.
            settings.set(RestartStrategyOptions.RESTART_STRATEGY, "exponential-delay");
            settings.set(RestartStrategyOptions.RESTART_STRATEGY_EXPONENTIAL_DELAY_MAX_BACKOFF, Duration.ofSeconds(10));
        }
        return settings;
    }

    /**
     * Key groups of a job that begins: 720 has many divisors, so slots have equal shares; Flink's choice, 128, would
     * stay for ever. State that there may be keeps its number: Flink takes it over where none is set, and refuses any
     * other. High availability does not say at the start whether it has some.
     */
    private void maxParallelism(Configuration settings, ReadableConfig cluster) {
        if (maxParallelism > 0) {
            settings.set(PipelineOptions.MAX_PARALLELISM, maxParallelism);
            return;
        }
        boolean mayRestore = cluster.getOptional(StateRecoveryOptions.SAVEPOINT_PATH).isPresent()
                || !"NONE".equalsIgnoreCase(cluster.get(HighAvailabilityOptions.HA_MODE));
        if (!mayRestore) byDefault(settings, cluster, PipelineOptions.MAX_PARALLELISM, NEW_MAX_PARALLELISM);
    }

    private static <T> void byDefault(Configuration settings, ReadableConfig cluster, ConfigOption<T> option, T value) {
        if (cluster.getOptional(option).isEmpty()) settings.set(option, value);
    }
}
