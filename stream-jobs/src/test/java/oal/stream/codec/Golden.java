package oal.stream.codec;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import oal.schema.Topic;

/** The contract's golden vectors (schema/golden). */
public final class Golden {
    public record Record(Topic topic, byte[] data) {}

    private static final Path FOLDER = Path.of(System.getProperty("oal.root", ".."), "schema", "golden");

    private Golden() {}

    public static List<Record> records(String name) {
        ByteBuffer in = ByteBuffer.wrap(bytes(name + ".bin")).order(ByteOrder.LITTLE_ENDIAN);
        List<Record> out = new ArrayList<>();
        while (in.hasRemaining()) {
            Topic topic = Topic.values()[in.get()];
            byte[] data = new byte[in.getInt()];
            in.get(data);
            out.add(new Record(topic, data));
        }
        return out;
    }

    public static List<String> lines(String file) {
        try {
            return Files.readAllLines(FOLDER.resolve(file));
        } catch (IOException e) {
            throw new UncheckedIOException("reading golden vector " + file, e);
        }
    }

    public static byte[] bytes(String file) {
        try {
            return Files.readAllBytes(FOLDER.resolve(file));
        } catch (IOException e) {
            throw new UncheckedIOException("reading golden vector " + file, e);
        }
    }
}
