package oal.stream.access;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Pattern;
import oal.schema.Settings;
import oal.stream.codec.Refusal;
import oal.stream.codec.RefusedException;

/** Records of {@code ap.access.v1}: {@code {"ap_id", "revoked_at_us", "who", "reason"}}, key ap_id; without a value: not revoked any more. */
public final class AccessDecoder {
    private static final JsonFactory JSON = new JsonFactoryBuilder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION).disable(StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION).build();
    private static final Set<String> FIELDS = Set.of("ap_id", "revoked_at_us", "who", "reason");
    /** What a certificate can carry. */
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}");

    private AccessDecoder() {}

    public static AccessChange decode(AccessRecord r) throws RefusedException {
        if (!NAME.matcher(r.key).matches()) throw malformed("the key is no name of an access point: 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first");
        if (r.value == null) return new AccessChange(r.key, AccessChange.NEVER, r.partition, r.offset);
        if (r.value.length > Settings.MAX_BATCH_BYTES) throw new RefusedException(Refusal.OVERSIZED, r.value.length + " bytes; at most " + Settings.MAX_BATCH_BYTES);
        try (JsonParser json = JSON.createParser(r.value)) {
            return new AccessChange(r.key, revokedAtUs(json, r.key), r.partition, r.offset);
        } catch (JsonProcessingException e) {
            throw malformed(e.getOriginalMessage() + " (byte " + Math.max(0, e.getLocation() == null ? 0 : e.getLocation().getByteOffset()) + ")");
        } catch (IOException e) {
            throw malformed(String.valueOf(e.getMessage()));
        }
    }

    private static long revokedAtUs(JsonParser json, String key) throws IOException, RefusedException {
        if (json.nextToken() != JsonToken.START_OBJECT) throw malformed("the record must be an object");
        Set<String> seen = new HashSet<>();
        String apId = null;
        long revokedAtUs = 0;
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            String field = json.currentName();
            if (!FIELDS.contains(field)) throw malformed("a record has no '" + brief(field) + "'");
            seen.add(field);
            JsonToken value = json.nextToken();
            if ("revoked_at_us".equals(field)) {
                if (value != JsonToken.VALUE_NUMBER_INT) throw malformed("\"revoked_at_us\" must be a whole number");
                if (json.getNumberType() == JsonParser.NumberType.BIG_INTEGER || json.getLongValue() < 0 || json.getLongValue() == AccessChange.NEVER) {
                    throw new RefusedException(Refusal.VALUE_RANGE, "revoked_at_us is " + brief(json.getText()) + ", no time in µs since 1970");
                }
                revokedAtUs = json.getLongValue();
            } else {
                if (value != JsonToken.VALUE_STRING) throw malformed("\"" + field + "\" must be a string");
                if ("ap_id".equals(field)) apId = json.getText();
            }
        }
        if (json.nextToken() != null) throw malformed("something follows the record");
        for (String field : FIELDS) if (!seen.contains(field)) throw malformed("the record has no \"" + field + "\"");
        if (!key.equals(apId)) throw new RefusedException(Refusal.KEY_MISMATCH, "key '" + key + "', ap_id '" + brief(apId) + "'");
        return revokedAtUs;
    }

    private static String brief(String s) {
        return s.length() <= 40 ? s : s.substring(0, 40) + "…";
    }

    private static RefusedException malformed(String detail) {
        return new RefusedException(Refusal.MALFORMED, detail);
    }
}
