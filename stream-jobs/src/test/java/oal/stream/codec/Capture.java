package oal.stream.codec;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import oal.schema.Topic;

/** Reads the lab's captures (format: ap-exporter/src/capture_file.h). */
public final class Capture {
    private static final int FILE_HEADER = 8;
    private static final int RECORD_HEADER = 24;

    private Capture() {}

    public static List<Path> committed() throws IOException {
        try (Stream<Path> files = Files.list(Path.of(System.getProperty("oal.root", ".."), "lab", "captures"))) {
            return files.filter(f -> f.toString().endsWith(".oalcap")).sorted().toList();
        }
    }

    public static List<Golden.Record> read(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.length < FILE_HEADER || !new String(bytes, 0, 6, java.nio.charset.StandardCharsets.US_ASCII).equals("OALCAP")) throw new IOException(file + " is no capture");
        List<Golden.Record> out = new ArrayList<>();
        for (int at = FILE_HEADER; at < bytes.length; ) {
            Topic topic = Topic.values()[in.get(at + 4)];
            int length = in.getInt(at + 8);
            out.add(new Golden.Record(topic, java.util.Arrays.copyOfRange(bytes, at + RECORD_HEADER, at + RECORD_HEADER + length)));
            at += RECORD_HEADER + length;
        }
        return out;
    }
}
