package oal.stream.feature;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.LongConsumer;
import oal.schema.FeatureProgram;
import oal.schema.Topic;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.RefusedException;

/**
 * {@code EvaluateProgram PROGRAM RECORDS}: a feature program (.oalf) over golden records (schema/golden/README.md), as
 * the job computes it. One line for each decision instant on standard output: the instant, then every feature, "-" for
 * one that is missing. For {@code policies/oal-policy check}; needs no library.
 */
public final class EvaluateProgram {
    private static final int HEADER_BYTES = 5;

    private EvaluateProgram() {}

    public static void main(String[] arguments) throws IOException, RefusedException {
        if (arguments.length != 2) {
            System.err.println("usage: EvaluateProgram PROGRAM RECORDS");
            System.exit(2);
        }
        FeatureProgram program = ProgramFile.read("program", Files.readAllBytes(Path.of(arguments[0])));
        try (PrintStream out = new PrintStream(System.out, false)) {
            run(program, Files.readAllBytes(Path.of(arguments[1])), out);
        }
    }

    /** Write the lines of a program over the records of a golden file; batches of one {@code t0_us} go together. */
    static void run(FeatureProgram program, byte[] records, PrintStream out) throws RefusedException {
        CompiledProgram compiled = new CompiledProgram(program);
        boolean[][] wanted = BatchDecoder.noColumns();
        compiled.wants(wanted);
        Workspace work = new Workspace(compiled);
        Interpreter interpreter = new Interpreter(compiled);
        LongConsumer line = instant -> out.append(text(instant, interpreter.features())).append('\n');
        ByteBuffer in = ByteBuffer.wrap(records).order(ByteOrder.LITTLE_ENDIAN);
        long group = 0;
        boolean open = false;
        while (in.remaining() >= HEADER_BYTES) {
            Topic topic = Topic.values()[in.get()];
            byte[] data = new byte[in.getInt()];
            in.get(data);
            BatchDecoder batch = BatchDecoder.only(wanted);
            batch.decode(topic, data);
            if (open && batch.header().t0Us != group) {
                interpreter.end(line);
                open = false;
            }
            if (!open) {
                group = batch.header().t0Us;
                interpreter.begin(work, batch.header().bootId, group, line);
                open = true;
            }
            interpreter.add(topic, batch);
        }
        if (open) interpreter.end(line);
    }

    private static String text(long instant, long[] x) {
        StringBuilder out = new StringBuilder().append(instant);
        for (long v : x) {
            out.append(' ');
            if (v == Long.MIN_VALUE) out.append('-');
            else out.append(v);
        }
        return out.toString();
    }
}
