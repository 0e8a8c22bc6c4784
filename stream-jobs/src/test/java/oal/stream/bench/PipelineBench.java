package oal.stream.bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import oal.stream.codec.RawBatch;
import oal.stream.pipeline.ApPipeline;
import oal.stream.pipeline.BrokerTime;
import oal.stream.pipeline.PipelineSettings;
import oal.stream.pipeline.Sinks;

/**
 * Rows per CPU-second of the pipeline: a Flink cluster in this process, checkpoints on, sinks that throw away. CPU is that of the whole
 * process (source, job manager, garbage collection and compiler included), from a quarter of the batches on: what comes before is the
 * cluster's start and the compiler's warming up.
 */
final class PipelineBench {
    private record Result(String name, double value, String unit, String note) {}

    private static final OperatingSystemMXBean OS = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private PipelineBench() {}

    static long cpuNs() {
        return OS.getProcessCpuTime();
    }

    public static void main(String[] args) throws Exception {
        Path out = Path.of(args[0]);
        int aps = Integer.parseInt(args.length > 1 ? args[1] : "20");
        long batches = 2L * aps * Long.parseLong(args.length > 2 ? args[2] : "400");
        List<Result> results = new ArrayList<>();
        long rows = BenchSource.rows(aps, batches / 4, batches);
        System.err.printf(Locale.ROOT, "stream bench: %d APs, %d batches, %d rows%n", aps, batches, rows);
        for (String backend : List.of("hashmap", "rocksdb")) {
            double cpu = run(backend, false, aps, batches);
            results.add(new Result("stream.rows_per_cpu_s." + backend, rows / cpu, "rows/CPU-s", "decode, label, feature, items; no raw rows"));
        }
        double cpu = run("hashmap", true, aps, batches);
        results.add(new Result("stream.rows_per_cpu_s.native", rows / cpu, "rows/CPU-s", "the same with every raw row encoded as ClickHouse Native blocks"));
        Files.createDirectories(out.getParent());
        StringBuilder json = new StringBuilder("[");
        for (Result r : results) {
            System.err.printf(Locale.ROOT, "stream bench: %-36s %,.0f %s (%s)%n", r.name, r.value, r.unit, r.note);
            json.append(json.length() > 1 ? ",\n " : "").append(String.format(Locale.ROOT,
                    "{\"name\": \"%s\", \"value\": %.0f, \"unit\": \"%s\", \"command\": \"make -C stream-jobs bench\", \"note\": \"%s; %d APs at the operating point, synthetic values, checkpoints every 2 s, CPU of the whole process\"}",
                    r.name, r.value, r.unit, r.note, aps));
        }
        Files.writeString(out, json.append("]\n").toString());
    }

    /** CPU-seconds of one run. */
    private static double run(String backend, boolean rawRows, int aps, long batches) throws Exception {
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
        var source = env.fromSource(new NumberSequenceSource(0, batches - 1), WatermarkStrategy.noWatermarks(), "numbers")
                .map(new BenchSource(aps, batches / 4)).returns(TypeInformation.of(RawBatch.class)).assignTimestampsAndWatermarks(BrokerTime.watermarks(Duration.ofMinutes(1)));
        ApPipeline.define(source, new Sinks(new DiscardingSink<>(), new DiscardingSink<>(), new DiscardingSink<>()), PipelineSettings.DEFAULT.withRawRows(rawRows));
        long wall = System.nanoTime();
        env.execute("bench");
        double cpu = (cpuNs() - BenchSource.cpuAtMark) / 1e9;
        System.err.printf(Locale.ROOT, "stream bench: %s%s: %.1f CPU-s, %.1f s%n", backend, rawRows ? " with raw rows" : "", cpu, (System.nanoTime() - wall) / 1e9);
        delete(checkpoints);
        return cpu;
    }

    private static void delete(Path folder) throws Exception {
        try (var files = Files.walk(folder)) {
            files.sorted(java.util.Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
        }
    }
}
