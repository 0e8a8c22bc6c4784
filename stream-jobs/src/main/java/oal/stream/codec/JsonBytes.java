package oal.stream.codec;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;

/** JSON as bytes in memory, UTF-8. */
public final class JsonBytes {
    private static final JsonFactory JSON = new JsonFactory();

    private JsonBytes() {}

    /** Writes one value. */
    public interface Value {
        void write(JsonGenerator json) throws IOException;
    }

    static JsonGenerator generator(OutputStream out) throws IOException {
        return JSON.createGenerator(out);
    }

    /** The value's bytes. */
    public static byte[] of(Value value) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(1024);
        try (JsonGenerator json = generator(out)) {
            value.write(json);
        } catch (IOException e) {
            throw new UncheckedIOException(e); // writing to memory does not fail
        }
        return out.toByteArray();
    }
}
