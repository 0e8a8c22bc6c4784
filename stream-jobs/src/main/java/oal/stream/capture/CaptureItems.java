package oal.stream.capture;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.List;
import oal.stream.process.BatchReplay;

/**
 * {@code items CAPTURE…}: training items of captures on standard output, one JSON object a line, as in
 * {@code training.items.v1}; or rows of {@code loss_event}.
 */
public final class CaptureItems {
    private static final String HELP = """
            usage: items [--losses] CAPTURE...

            Writes the training items of captures (.oalcap) to standard output, one JSON object a line, as the job
            writes them to training.items.v1: made by the same code, without Kafka or Flink. Items of a capture are in
            order of time. With --losses: rows of loss_event instead, in order of their repetition. What was
            read is said on standard error.
            Exit status: 0 done, 1 a file cannot be read or is no capture, 2 wrong usage.
            """;

    private CaptureItems() {}

    public static void main(String[] arguments) {
        System.exit(run(List.of(arguments), new FileOutputStream(FileDescriptor.out), System.err));
    }

    /** @return exit status */
    public static int run(List<String> arguments, OutputStream out, PrintStream log) {
        if (arguments.equals(List.of("--help")) || arguments.equals(List.of("-h"))) {
            new PrintStream(out, true).print(HELP);
            return 0;
        }
        boolean losses = !arguments.isEmpty() && arguments.get(0).equals("--losses");
        if (losses) arguments = arguments.subList(1, arguments.size());
        if (arguments.isEmpty() || arguments.get(0).startsWith("-")) {
            log.print(HELP);
            return 2;
        }
        try (OutputStream lines = new BufferedOutputStream(out, 1 << 16)) {
            for (String file : arguments) write(Path.of(file), losses, lines, log);
            return 0;
        } catch (IOException e) {
            log.println("items: " + (e instanceof java.nio.file.NoSuchFileException ? "no such file: " : "")
                    + e.getMessage());
            return 1;
        }
    }

    private static void write(Path file, boolean losses, OutputStream lines, PrintStream log) throws IOException {
        CaptureFile capture = CaptureFile.open(file);
        BatchReplay replay = new BatchReplay(losses);
        for (CaptureFile.Batch batch = capture.next(); batch != null; batch = capture.next()) {
            replay.add(batch.topic(), batch.data());
            write(replay, lines);
        }
        replay.end();
        write(replay, lines);
        log.println("items: " + file + ": " + replay + (capture.skippedBytes() > 0 ? ", " + capture.skippedBytes()
                + " bytes damaged" : ""));
    }

    private static void write(BatchReplay replay, OutputStream lines) throws IOException {
        for (byte[] json : replay.drain()) {
            lines.write(json);
            lines.write('\n');
        }
    }
}
