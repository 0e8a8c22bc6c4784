package oal.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import oal.stream.pipeline.ApPipeline;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.streaming.api.graph.StreamNode;
import org.junit.jupiter.api.Test;

/** The graph with its real sources and sinks, not started. */
class StreamJobTest {
    private static StreamJob job(String... more) {
        Properties properties = new Properties();
        properties.setProperty("kafka.bootstrap.servers", "kafka:9094");
        properties.setProperty("clickhouse.url", "http://clickhouse:8123");
        for (int i = 0; i < more.length; i += 2) properties.setProperty(more[i], more[i + 1]);
        return StreamJob.of(JobConfig.of(properties));
    }

    private static StreamGraph graph(StreamJob job) {
        return graph(job, new Configuration());
    }

    private static StreamGraph graph(StreamJob job, Configuration cluster) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(job.settings(cluster));
        ApPipeline.configure(env);
        env.setParallelism(3);
        job.define(env);
        return env.getStreamGraph();
    }

    @Test
    void everyOperatorHasAUidThatOutlivesARelease() {
        StreamGraph graph = graph(job());
        graph.getJobGraph(); // throws for one without, because uids are not made up
        Set<String> uids = graph.getStreamNodes().stream().map(StreamNode::getTransformationUID)
                .filter(uid -> uid != null).collect(Collectors.toSet());
        assertTrue(uids.containsAll(Set.of("batches", "decode", "label-feature-item", "platform-source",
                "platform-events", "rows-sink", "items-sink", "dead-letters-sink", "neighbours", "neighbours-sink",
                "access-source", "access-records")), uids.toString());
        for (StreamNode node : graph.getStreamNodes()) assertNotNull(node.getOperatorName());
    }

    @Test
    void sinksHaveTheirOwnParallelism() {
        for (StreamNode node : graph(job("sink.parallelism", "2")).getStreamNodes()) {
            boolean sink = node.getOperatorName().contains("Writer") || node.getOperatorName().contains("Committer");
            boolean access = node.getOperatorName().contains("access");
            assertEquals(sink ? 2 : access ? 1 : 3, node.getParallelism(), node.getOperatorName());
        }
    }

    private static Set<Integer> maxParallelism(StreamJob job, String... cluster) {
        Configuration configuration = new Configuration();
        for (int i = 0; i < cluster.length; i += 2) configuration.setString(cluster[i], cluster[i + 1]);
        Set<Integer> found = new TreeSet<>();
        graph(job, configuration).getJobGraph().getVertices().forEach(v -> found.add(v.getMaxParallelism()));
        return found;
    }

    @Test
    void aJobThatBeginsHasKeyGroupsForManySlotsAndStateKeepsItsOwn() {
        Set<Integer> unset = Set.of(-1); // Flink takes the checkpoint's
        assertEquals(Set.of(720), maxParallelism(job()));
        assertEquals(unset, maxParallelism(job(), "execution.state-recovery.path", "file:///checkpoint"));
        assertEquals(unset, maxParallelism(job(), "high-availability.type", "kubernetes"));
        StreamJob chosen = job("max.parallelism", "1440");
        assertEquals(Set.of(1440), maxParallelism(chosen));
        assertEquals(Set.of(1440), maxParallelism(chosen, "high-availability.type", "kubernetes"));
    }

    @Test
    void theClustersChoiceStandsAndWhatItLeavesOpenIsSet() {
        Configuration nothing = new Configuration();
        Configuration settings = job().settings(nothing);
        assertEquals(Duration.ofSeconds(1), settings.get(CheckpointingOptions.CHECKPOINTING_INTERVAL));
        assertEquals("exponential-delay", settings.get(RestartStrategyOptions.RESTART_STRATEGY));
        assertEquals(Integer.MAX_VALUE, settings.get(CheckpointingOptions.TOLERABLE_FAILURE_NUMBER));
        assertEquals(false, settings.get(PipelineOptions.AUTO_GENERATE_UIDS));

        Configuration cluster = new Configuration();
        cluster.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofSeconds(7));
        cluster.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        Configuration beside = job().settings(cluster);
        assertTrue(beside.getOptional(CheckpointingOptions.CHECKPOINTING_INTERVAL).isEmpty());
        assertTrue(beside.getOptional(RestartStrategyOptions.RESTART_STRATEGY).isEmpty());
        assertEquals(Duration.ofMillis(250), job("checkpoint.interval.ms", "250").settings(cluster)
                .get(CheckpointingOptions.CHECKPOINTING_INTERVAL));
    }
}
