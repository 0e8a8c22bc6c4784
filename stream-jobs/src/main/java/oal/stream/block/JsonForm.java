package oal.stream.block;

import java.util.List;
import oal.schema.ClickHouseColumn;
import oal.schema.StreamTables;
import oal.schema.TableSpec;
import oal.schema.Tables;

/**
 * Tables that take rows of batches and rows of JSON, such as {@code sender_tcp}. The two have other columns, so they
 * are never in one block, nor in one insert: blocks of the JSON form have a name of their own.
 */
public final class JsonForm {
    private static final String SUFFIX = "_json";

    private JsonForm() {}

    /** What blocks of this table's JSON form are called. */
    public static String blockName(String table) {
        return sent(table) == null ? table : table + SUFFIX;
    }

    /** The table that blocks of this name are for. */
    public static String table(String blockName) {
        return isJson(blockName) ? blockName.substring(0, blockName.length() - SUFFIX.length()) : blockName;
    }

    /** The columns that such a block has, where the table has more than these; else null. */
    public static List<ClickHouseColumn> columns(String blockName) {
        if (isJson(blockName)) return StreamTables.FROM_JSON.get(table(blockName));
        TableSpec spec = sent(blockName);
        return spec == null || !StreamTables.FROM_JSON.containsKey(blockName) ? null : spec.clickhouse();
    }

    private static boolean isJson(String blockName) {
        if (!blockName.endsWith(SUFFIX)) return false;
        String table = blockName.substring(0, blockName.length() - SUFFIX.length());
        return sent(table) != null && StreamTables.FROM_JSON.containsKey(table);
    }

    /** The table of this name whose rows come in batches; null for none. */
    private static TableSpec sent(String table) {
        for (TableSpec t : Tables.ALL) if (t.name().equals(table)) return t;
        return null;
    }
}
