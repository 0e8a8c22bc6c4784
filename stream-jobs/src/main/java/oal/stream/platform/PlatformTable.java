package oal.stream.platform;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import oal.schema.ClickHouseColumn;
import oal.schema.Settings;
import oal.schema.StreamTables;
import oal.stream.block.JsonForm;
import oal.stream.block.NativeBlockWriter;
import oal.stream.codec.Refusal;
import oal.stream.codec.RefusedException;
import oal.stream.codec.StrictJson;

/** A table whose rows come as JSON (schema/README.md, "Records that are JSON"). */
final class PlatformTable {
    final NativeBlockWriter writer;
    private final String name;
    private final JsonColumn[] columns;
    private final Map<String, Integer> index = new HashMap<>();

    private PlatformTable(String name, List<ClickHouseColumn> spec) {
        this.name = name;
        writer = new NativeBlockWriter(JsonForm.blockName(name), spec);
        columns = spec.stream().map(c -> JsonColumn.of(name, c)).toArray(JsonColumn[]::new);
        for (int i = 0; i < columns.length; i++) index.put(columns[i].name, i);
    }

    static Map<String, PlatformTable> all() {
        Map<String, PlatformTable> all = new HashMap<>();
        StreamTables.FROM_JSON.forEach((name, spec) -> all.put(name, new PlatformTable(name, spec)));
        return all;
    }

    /** Reads a row from the parser's START_OBJECT: one value per column. Only {@link #add} keeps it. */
    Object[] read(JsonParser json, long nowUs) throws IOException, RefusedException {
        if (json.currentToken() != JsonToken.START_OBJECT) {
            throw new RefusedException(Refusal.MALFORMED, name + ": a row must be an object");
        }
        Object[] row = new Object[columns.length];
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            Integer i = index.get(json.currentName());
            if (i == null) {
                throw new RefusedException(Refusal.MALFORMED, name + " has no column '"
                        + StrictJson.brief(json.currentName()) + "'");
            }
            row[i] = json.nextToken() == JsonToken.VALUE_NULL ? null : columns[i].read(json);
        }
        for (int i = 0; i < row.length; i++) if (row[i] == null) row[i] = columns[i].absent();
        // A wrong time would make a partition of its own, and an INSERT into too many partitions fails.
        long ahead = (long) row[index.get("ts")] - nowUs;
        if (ahead > Settings.MAX_FUTURE_US || -ahead > Settings.MAX_PAST_US) {
            throw new RefusedException(Refusal.TIME_RANGE, name + ".ts is " + ahead / 1000
                    + " ms from the broker's time");
        }
        return row;
    }

    void add(Object[] row) {
        for (int i = 0; i < row.length; i++) columns[i].add(writer, i, row[i]);
    }
}
