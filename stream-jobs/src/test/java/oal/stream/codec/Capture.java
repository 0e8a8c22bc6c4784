package oal.stream.codec;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import oal.stream.capture.CaptureFile;

/** The lab's captures. */
public final class Capture {
    private Capture() {}

    public static List<Path> committed() throws IOException {
        try (Stream<Path> files = Files.list(Path.of(System.getProperty("oal.root", ".."), "lab", "captures"))) {
            return files.filter(f -> f.toString().endsWith(".oalcap")).sorted().toList();
        }
    }

    public static List<Golden.Record> read(Path file) throws IOException {
        CaptureFile capture = CaptureFile.open(file);
        List<Golden.Record> out = new ArrayList<>();
        for (CaptureFile.Batch b = capture.next(); b != null; b = capture.next()) {
            out.add(new Golden.Record(b.topic(), b.data()));
        }
        if (capture.skippedBytes() > 0) throw new IOException(file + ": " + capture.skippedBytes() + " bytes damaged");
        return out;
    }
}
