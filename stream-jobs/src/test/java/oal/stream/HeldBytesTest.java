package oal.stream;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import oal.schema.Settings;
import oal.stream.bench.SyntheticAp;
import org.junit.jupiter.api.Test;

/**
 * Does what may be read between two checkpoints let the shipped example of 1,000 access points hold its rate, and does
 * the TaskManagers' memory hold the rows of it?
 */
class HeldBytesTest {
    private static final Path ROOT = Path.of(System.getProperty("oal.root", ".."));
    private static final int APS = 1000;
    /** A checkpoint begins every interval and takes as long again before it is complete. */
    private static final int INTERVALS = 2;
    /** A row of the operating point in a held insert: 9.3 B, delta-coded and in LZ4. */
    private static final double ROW_BYTES = 9.3;
    private static final double ROWS_PER_S_AND_AP = 4000;
    /** The insert, its copy in the committer, and the one that is written to the checkpoint. */
    private static final int COPIES = 3;

    private static long number(String file, String regex) throws Exception {
        Matcher m = Pattern.compile(regex).matcher(Files.readString(ROOT.resolve(file)));
        assertTrue(m.find(), file + " lacks " + regex);
        return Long.parseLong(m.group(1));
    }

    /** Default of the key, as the job's help says it. */
    private static long maxBytes() {
        Matcher m = Pattern.compile("sink.held.max.bytes\\n.*\\(default: ([0-9]+)\\)").matcher(Main.help());
        assertTrue(m.find());
        return Long.parseLong(m.group(1));
    }

    @Test
    void theExampleOfAThousandAccessPointsHoldsItsRateInItsMemory() throws Exception {
        String fleet = "helm/oal/examples/fleet.yaml";
        long managers = number(fleet, "taskManager: \\{replicas: ([0-9]+)");
        long readers = managers * number(fleet, "slots: ([0-9]+)");
        long heapBytes = number(fleet, "heapMiB: ([0-9]+), managedMiB") << 20;
        long intervalS = number(fleet, "interval: ([0-9]+)s");

        SyntheticAp ap = new SyntheticAp(1);
        int batches = 40;
        long bytes = 0;
        for (int i = 0; i < batches; i++) {
            bytes += ap.samples().record(0).value.length + ap.packets().record(0).value.length;
        }
        double bytesPerS = bytes / (batches * Settings.BATCH_TICKS * Settings.TICK_US / 1e6);
        double perReader = APS * bytesPerS * INTERVALS * intervalS / readers;
        System.out.printf("an access point makes %.0f B/s of batches; a reader reads %.0f MiB in %d s, of %d MiB%n",
                bytesPerS, perReader / (1 << 20), INTERVALS * intervalS, maxBytes() >> 20);
        assertTrue(perReader < maxBytes(), perReader + " bytes a reader between complete checkpoints");
        double seconds = maxBytes() * readers / (APS * bytesPerS);
        double rows = seconds * APS * ROWS_PER_S_AND_AP * ROW_BYTES * COPIES / managers;
        System.out.printf("rows of all that may be held: %.0f MiB a TaskManager, of %d%n", rows / (1 << 20),
                heapBytes >> 20);
        assertTrue(rows < heapBytes * 2 / 3, rows + " bytes a TaskManager");
    }
}
