package oal.stream.bench;

import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import oal.schema.Topic;
import oal.stream.access.BatchMac;
import oal.stream.access.MacKeys;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.RawBatch;
import org.apache.flink.metrics.SimpleCounter;

/** CPU time of this thread for checking MACs beside that for decoding the same batches. */
final class MacBench {
    private static final int APS = 1000;
    private static final int ROUNDS = 30;

    private MacBench() {}

    /** For a MAC, and for decoding. */
    static double[] nsPerByte() throws Exception {
        Path file = Files.createTempFile("oal-bench", "masters");
        MacKeys keys = new MacKeys(file, 1);
        BatchMac macs = new BatchMac(file, 0, new SimpleCounter());
        List<RawBatch> batches = new ArrayList<>();
        List<String> names = new ArrayList<>();
        long bytes = 0;
        for (int ap = 0; ap < APS; ap++) {
            SyntheticAp of = new SyntheticAp(ap);
            for (var b : List.of(of.samples(), of.packets())) {
                b.apId = "ap-" + ap;
                b.t0Us = 1_700_000_000_000_000L;
                batches.add(keys.signed(b.record(0), 1, b.apId, b.site));
                names.add(b.site);
                bytes += b.build().length;
            }
        }
        Files.delete(file);
        BatchDecoder decoder = BatchDecoder.all();
        double[] best = {Double.MAX_VALUE, Double.MAX_VALUE};
        for (int round = 0; round < ROUNDS; round++) {
            long start = cpuNs();
            for (int i = 0; i < batches.size(); i++) macs.check(batches.get(i), batches.get(i).key, names.get(i), 0);
            long middle = cpuNs();
            for (RawBatch b : batches) decoder.decode(Topic.values()[b.topic], b.value);
            long end = cpuNs();
            best[0] = Math.min(best[0], (middle - start) / (double) bytes);
            best[1] = Math.min(best[1], (end - middle) / (double) bytes);
        }
        return best;
    }

    private static long cpuNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}
