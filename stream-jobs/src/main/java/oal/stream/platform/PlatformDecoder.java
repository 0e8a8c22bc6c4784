package oal.stream.platform;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import oal.schema.Settings;
import oal.stream.codec.Refusal;
import oal.stream.codec.RefusedException;

/** Records of {@code platform.events.v1} to rows: {@code {"table": T, "rows": [{column: value, …}, …]}}. A record is taken whole or refused whole. */
final class PlatformDecoder {
    private static final JsonFactory JSON = new JsonFactoryBuilder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION).disable(StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION).build();

    private final Map<String, PlatformTable> tables = PlatformTable.all();

    Iterable<PlatformTable> tables() {
        return tables.values();
    }

    /** @return rows added to their table's writer */
    int decode(byte[] value, long kafkaTsMs) throws RefusedException {
        if (value.length > Settings.MAX_BATCH_BYTES) throw new RefusedException(Refusal.OVERSIZED, value.length + " bytes; at most " + Settings.MAX_BATCH_BYTES);
        try {
            PlatformTable table = table(value);
            List<Object[]> rows = rows(value, table, kafkaTsMs * 1000);
            for (Object[] row : rows) table.add(row);
            return rows.size();
        } catch (JsonProcessingException e) {
            throw malformed(e.getOriginalMessage() + " (byte " + Math.max(0, e.getLocation() == null ? 0 : e.getLocation().getByteOffset()) + ")");
        } catch (IOException e) {
            throw malformed(String.valueOf(e.getMessage()));
        }
    }

    /** The table may stand behind its rows: writers that order keys by name put it there. */
    private PlatformTable table(byte[] value) throws IOException, RefusedException {
        try (JsonParser json = JSON.createParser(value)) {
            if (json.nextToken() != JsonToken.START_OBJECT) throw malformed("the record must be an object");
            while (json.nextToken() == JsonToken.FIELD_NAME) {
                boolean named = "table".equals(json.currentName());
                json.nextToken();
                if (!named) {
                    json.skipChildren();
                    continue;
                }
                if (json.currentToken() != JsonToken.VALUE_STRING) throw malformed("\"table\" must be a string");
                PlatformTable table = tables.get(json.getText());
                if (table == null) throw malformed("no table '" + brief(json.getText()) + "'; there are " + String.join(", ", tables.keySet().stream().sorted().toList()));
                return table;
            }
            throw malformed("the record has no \"table\"");
        }
    }

    private List<Object[]> rows(byte[] value, PlatformTable table, long nowUs) throws IOException, RefusedException {
        try (JsonParser json = JSON.createParser(value)) {
            List<Object[]> rows = null;
            json.nextToken();
            while (json.nextToken() == JsonToken.FIELD_NAME) {
                String field = json.currentName();
                json.nextToken();
                if ("table".equals(field)) continue;
                if (!"rows".equals(field)) throw malformed("a record has \"table\" and \"rows\", and no '" + brief(field) + "'");
                if (json.currentToken() != JsonToken.START_ARRAY) throw malformed("\"rows\" must be an array");
                rows = new ArrayList<>();
                while (json.nextToken() != JsonToken.END_ARRAY) rows.add(table.read(json, nowUs));
            }
            if (rows == null) throw malformed("the record has no \"rows\"");
            if (json.nextToken() != null) throw malformed("something follows the record");
            return rows;
        }
    }

    static String brief(String s) {
        return s.length() <= 40 ? s : s.substring(0, 40) + "…";
    }

    private static RefusedException malformed(String detail) {
        return new RefusedException(Refusal.MALFORMED, detail);
    }
}
