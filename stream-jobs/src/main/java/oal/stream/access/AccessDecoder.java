package oal.stream.access;

import static oal.stream.codec.RefusedException.malformed;
import static oal.stream.codec.StrictJson.brief;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import oal.stream.codec.CertificateName;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.Refusal;
import oal.stream.codec.RefusedException;
import oal.stream.codec.StrictJson;

/**
 * Records of {@code ap.access.v1}: {@code {"ap_id", "revoked_at_us", "who", "reason"}}, key ap_id; without a value: not
 * revoked any more.
 */
public final class AccessDecoder {
    private static final Set<String> FIELDS = Set.of("ap_id", "revoked_at_us", "who", "reason");

    private AccessDecoder() {}

    public static AccessChange decode(JsonRecord r) throws RefusedException {
        if (!CertificateName.is(r.key)) {
            throw malformed("the key is no name of an access point: 1 to 64 letters, digits, dots, dashes and "
                    + "underscores, a letter or digit first");
        }
        if (r.value == null) return new AccessChange(r.key, AccessChange.NEVER, r.partition, r.offset);
        StrictJson.checkSize(r.value);
        try (JsonParser json = StrictJson.parser(r.value)) {
            return new AccessChange(r.key, revokedAtUs(json, r.key), r.partition, r.offset);
        } catch (IOException e) {
            throw StrictJson.malformed(e);
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
                if (json.getNumberType() == JsonParser.NumberType.BIG_INTEGER || json.getLongValue() < 0
                        || json.getLongValue() == AccessChange.NEVER) {
                    throw new RefusedException(Refusal.VALUE_RANGE, "revoked_at_us is " + brief(json.getText())
                            + ", no time in µs since 1970");
                }
                revokedAtUs = json.getLongValue();
            } else {
                if (value != JsonToken.VALUE_STRING) throw malformed("\"" + field + "\" must be a string");
                if ("ap_id".equals(field)) apId = json.getText();
            }
        }
        if (json.nextToken() != null) throw malformed("something follows the record");
        for (String field : FIELDS) if (!seen.contains(field)) throw malformed("the record has no \"" + field + "\"");
        if (!key.equals(apId)) {
            throw new RefusedException(Refusal.KEY_MISMATCH, "key '" + key + "', ap_id '" + brief(apId) + "'");
        }
        return revokedAtUs;
    }
}
