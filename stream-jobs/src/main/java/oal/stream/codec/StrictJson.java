package oal.stream.codec;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import oal.schema.Settings;

/** What the decoders of JSON records share. */
public final class StrictJson {
    private static final JsonFactory JSON = new JsonFactoryBuilder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION).disable(StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION)
            .build();

    private StrictJson() {}

    /** Refuses a record that is too long, before any of it is parsed. */
    public static void checkSize(byte[] value) throws RefusedException {
        if (value.length > Settings.MAX_BATCH_BYTES) {
            throw new RefusedException(Refusal.OVERSIZED, value.length + " bytes; at most " + Settings.MAX_BATCH_BYTES);
        }
    }

    public static JsonParser parser(byte[] value) throws IOException {
        return JSON.createParser(value);
    }

    /** The parser's error as the reason to refuse the record. */
    public static RefusedException malformed(IOException e) {
        if (!(e instanceof JsonProcessingException json)) {
            return RefusedException.malformed(String.valueOf(e.getMessage()));
        }
        return RefusedException.malformed(json.getOriginalMessage() + " (byte " + Math.max(0, json.getLocation() == null
                ? 0 : json.getLocation().getByteOffset()) + ")");
    }

    /** The beginning of an untrusted text, short enough for a message. */
    public static String brief(String s) {
        return s.length() <= 40 ? s : s.substring(0, 40) + "…";
    }
}
