package oal.stream.bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import oal.stream.access.Revocations;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RawBatch;
import oal.stream.operator.PipelineSettings;
import oal.stream.pipeline.ApPipeline;
import oal.stream.pipeline.RecordTime;
import oal.stream.pipeline.Inputs;
import oal.stream.pipeline.Sinks;
import oal.stream.policy.Policies;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/**
 * Rows per CPU-second of the pipeline: a Flink cluster in this process, checkpoints on, sinks that throw away. CPU is
 * that of the whole process (source, job manager, garbage collection and compiler included), from a quarter of the
 * batches on: what comes before is the cluster's start and the compiler's warming up.
 */
final class PipelineBench {
    private record Result(String name, double value, String unit, String note) {}

    private static final OperatingSystemMXBean OS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private PipelineBench() {}

    static long cpuNs() {
        return OS.getProcessCpuTime();
    }

    public static void main(String[] args) throws Exception {
        Path out = Path.of(args[0]);
        int aps = Integer.parseInt(args[1]);
        long batches = 2L * aps * Long.parseLong(args[2]);
        List<Result> results = new ArrayList<>();
        measure("capture", "hashmap", false, aps, batches, "", results);
        measure("capture", "rocksdb", false, aps, batches, ".rocksdb", results);
        measure("capture", "hashmap", true, aps, batches, ".native", results);
        measure("synthetic", "hashmap", false, aps, batches, ".synthetic", results);
        double[] mac = MacBench.nsPerByte();
        results.add(new Result("stream.mac_mb_per_cpu_s", 1000 / mac[0], "MB/CPU-s", String.format(Locale.ROOT,
                "checking the MACs of synthetic batches; decoding them takes %.1f times as long", mac[1] / mac[0])));
        Files.createDirectories(out.toAbsolutePath().getParent());
        StringBuilder json = new StringBuilder("[");
        for (Result r : results) {
            json.append(json.length() > 1 ? ",\n " : "").append(String.format(Locale.ROOT,
                    "{\"name\": \"%s\", \"value\": %.0f, \"unit\": \"%s\", \"command\": \"make -C stream-jobs bench\", "
                            + "\"note\": \"%s\"}", r.name, r.value, r.unit, r.note));
        }
        Files.writeString(out, json.append("]\n").toString());
    }

    private static void measure(String what, String backend, boolean rawRows, int aps, long batches, String suffix,
            List<Result> results) throws Exception {
        long rows = BenchSource.rows(Bodies.load(what), aps, batches / 4 / 2 * 2, batches);
        double cpu = run(what, backend, rawRows, aps, batches);
        Result r = new Result("stream.rows_per_cpu_s" + suffix, rows / cpu, "rows/CPU-s", String.format(Locale.ROOT,
                "decode, label, feature, items, predictions, neighbours%s; %s batches of %d APs, %d rows; %s state, "
                        + "checkpoint every 2 s; CPU of the whole process, cluster and source included",
                rawRows ? " and every raw row encoded for ClickHouse" : "", what.equals("capture") ? "the lab captures'"
                        : "synthetic", aps, rows, backend));
        results.add(r);
        System.err.printf(Locale.ROOT, "stream bench: %-36s %,.0f %s (%s)%n", r.name, r.value, r.unit, r.note);
    }

    /** CPU-seconds of one run. */
    private static double run(String what, String backend, boolean rawRows, int aps, long batches) throws Exception {
        Path checkpoints = Files.createTempDirectory("oal-bench");
        Configuration c = new Configuration();
        c.set(StateBackendOptions.STATE_BACKEND, backend);
        c.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofSeconds(2));
        c.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
        c.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, checkpoints.toUri().toString());
        c.set(RestartStrategyOptions.RESTART_STRATEGY, "disable");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(c);
        env.setParallelism(1);
        ApPipeline.configure(env);
        var source = env.fromSource(new NumberSequenceSource(0, batches - 1), WatermarkStrategy.noWatermarks(),
                "numbers")
                .flatMap(new BenchSource(what, aps, batches / 4 / 2 * 2)).returns(TypeInformation.of(RawBatch.class))
                        .assignTimestampsAndWatermarks(RecordTime.watermarks());
        ApPipeline.define(new Inputs(source, env.fromData(List.of(new JsonRecord("", null, 0, 0, 0))),
                env.fromData(List.of(new JsonRecord("", null, 0, 0, 0))), Revocations::new),
                new Sinks(new DiscardingSink<>(), new DiscardingSink<>(), new DiscardingSink<>(),
                new DiscardingSink<>()), PipelineSettings.DEFAULT.withRawRows(rawRows), Policies.packed());
        env.execute("bench");
        double cpu = (cpuNs() - BenchSource.cpuAtMark) / 1e9;
        delete(checkpoints);
        return cpu;
    }

    private static void delete(Path folder) throws Exception {
        try (var files = Files.walk(folder)) {
            files.sorted(java.util.Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
        }
    }
}
