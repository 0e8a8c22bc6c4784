package oal.stream.feature;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.ArrayList;
import java.util.List;
import oal.schema.FeatureProgram;
import oal.schema.FeaturePrograms;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Golden;
import org.junit.jupiter.api.Test;

/**
 * The interpreter gives, bit for bit, what the reference gives; also when its state goes through bytes at every batch.
 */
class GoldenFeaturesTest {
    @Test
    void congestionProgram() throws Exception {
        assertGolden(FeaturePrograms.CONGESTION, "features.congestion.txt", false);
    }

    @Test
    void everyOperatorAndGroup() throws Exception {
        assertGolden(ProgramFile.read("operators", Golden.bytes("operators.oalf")), "features.operators.txt", false);
    }

    @Test
    void stateSurvivesSerialisation() throws Exception {
        assertGolden(FeaturePrograms.CONGESTION, "features.congestion.txt", true);
        assertGolden(ProgramFile.read("operators", Golden.bytes("operators.oalf")), "features.operators.txt", true);
    }

    @Test
    void theHashIsTheOneOfTheProgramsBytes() throws Exception {
        FeatureProgram file = ProgramFile.read("congestion", java.nio.file.Files.readAllBytes(
                java.nio.file.Path.of(System.getProperty("oal.root", ".."),
                        "schema/generated/features/congestion.oalf")));
        assertArrayEquals(FeaturePrograms.CONGESTION.hash(), file.hash());
    }

    private static void assertGolden(FeatureProgram program, String file, boolean serialise) throws Exception {
        CompiledProgram compiled = new CompiledProgram(program);
        boolean[][] wanted = BatchDecoder.noColumns();
        compiled.wants(wanted);
        List<String> got = new ArrayList<>();
        Workspace work = new Workspace(compiled);
        Interpreter run = new Interpreter(compiled);
        List<Golden.Record> records = Golden.records("features");
        for (int i = 0; i < records.size(); ) {
            Interpreter now = run;
            java.util.function.LongConsumer line = instant -> got.add(text(instant, now.features()));
            BatchDecoder first = BatchDecoder.only(wanted);
            first.decode(records.get(i).topic(), records.get(i).data());
            long t0 = first.header().t0Us;
            now.begin(work, first.header().bootId, t0, line);
            now.add(records.get(i).topic(), first);
            for (i++; i < records.size(); i++) {
                BatchDecoder other = BatchDecoder.only(wanted);
                other.decode(records.get(i).topic(), records.get(i).data());
                if (other.header().t0Us != t0) break;
                now.add(records.get(i).topic(), other);
            }
            now.end(line);
            if (serialise) run = copy(compiled, now);
        }
        List<String> want = Golden.lines(file);
        assertTrue(want.size() > 50, "a golden file of " + want.size() + " lines");
        for (int i = 0; i < Math.min(want.size(), got.size()); i++) {
            assertEquals(want.get(i), got.get(i), file + " line " + (i + 1));
        }
        assertEquals(want.size(), got.size());
    }

    private static Interpreter copy(CompiledProgram program, Interpreter from) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        from.write(new DataOutputStream(bytes));
        Interpreter to = new Interpreter(program);
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes.toByteArray()));
        to.read(in);
        assertEquals(0, in.available(), "bytes left over");
        return to;
    }

    private static String text(long instant, long[] x) {
        StringBuilder s = new StringBuilder().append(instant);
        for (long v : x) s.append(' ').append(v == Long.MIN_VALUE ? "-" : Long.toString(v));
        return s.toString();
    }
}
