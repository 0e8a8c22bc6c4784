package oal.stream.platform;

import static oal.stream.codec.RefusedException.malformed;
import static oal.stream.codec.StrictJson.brief;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RefusedException;
import oal.stream.codec.StrictJson;

/**
 * Records of {@code platform.events.v1} to rows: {@code {"table": T, "rows": [{column: value, …}, …]}}. A record is
 * used as a whole or refused as a whole.
 */
final class PlatformDecoder {
    private final Map<String, PlatformTable> tables = PlatformTable.all();

    Iterable<PlatformTable> tables() {
        return tables.values();
    }

    /** @return rows added to their table's writer */
    int decode(JsonRecord record) throws RefusedException {
        byte[] value = record.value == null ? new byte[0] : record.value;
        StrictJson.checkSize(value);
        try {
            PlatformTable table = table(value);
            List<Object[]> rows = rows(value, table, record.kafkaTsMs * 1000);
            for (Object[] row : rows) table.add(row);
            return rows.size();
        } catch (IOException e) {
            throw StrictJson.malformed(e);
        }
    }

    /** The key "table" may come after "rows": some writers sort keys by name. */
    private PlatformTable table(byte[] value) throws IOException, RefusedException {
        try (JsonParser json = StrictJson.parser(value)) {
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
                if (table == null) {
                    throw malformed("no table '" + brief(json.getText()) + "'; there are "
                            + String.join(", ", tables.keySet().stream().sorted().toList()));
                }
                return table;
            }
            throw malformed("the record has no \"table\"");
        }
    }

    private List<Object[]> rows(byte[] value, PlatformTable table, long nowUs) throws IOException, RefusedException {
        try (JsonParser json = StrictJson.parser(value)) {
            List<Object[]> rows = null;
            json.nextToken();
            while (json.nextToken() == JsonToken.FIELD_NAME) {
                String field = json.currentName();
                json.nextToken();
                if ("table".equals(field)) continue;
                if (!"rows".equals(field)) {
                    throw malformed("a record has \"table\" and \"rows\", and no '" + brief(field) + "'");
                }
                if (json.currentToken() != JsonToken.START_ARRAY) throw malformed("\"rows\" must be an array");
                rows = new ArrayList<>();
                while (json.nextToken() != JsonToken.END_ARRAY) rows.add(table.read(json, nowUs));
            }
            if (rows == null) throw malformed("the record has no \"rows\"");
            if (json.nextToken() != null) throw malformed("something follows the record");
            return rows;
        }
    }
}
