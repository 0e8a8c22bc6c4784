package oal.stream.block;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import oal.schema.ClickHouseColumn;
import oal.schema.RowSink;

/**
 * Collects rows of one table, column by column, and gives them as one block of ClickHouse's Native format: varint
 * columns, varint rows, then per column its name, its type and its data. Source: ClickHouse's
 * {@code NativeWriter}/{@code SerializationLowCardinality}; checked against the server in the tests.
 */
public final class NativeBlockWriter implements RowSink {
    private final String table;
    private final List<ClickHouseColumn> spec;
    private final BlockColumn[] columns;
    private final byte[][] heads;
    private int headBytes;

    public NativeBlockWriter(String table, List<ClickHouseColumn> spec) {
        this.table = table;
        this.spec = spec;
        columns = new BlockColumn[spec.size()];
        heads = new byte[spec.size()][];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = column(spec.get(i));
            Bytes head = new Bytes(64);
            head.putString(spec.get(i).name().getBytes(StandardCharsets.UTF_8));
            head.putString(spec.get(i).type().getBytes(StandardCharsets.UTF_8));
            heads[i] = Arrays.copyOf(head.data, head.size);
            headBytes += head.size;
        }
    }

    private static BlockColumn column(ClickHouseColumn c) {
        String type = c.type();
        boolean nullable = type.startsWith("Nullable(");
        String of = nullable ? type.substring(9, type.length() - 1) : type;
        String family = of.contains("(") ? of.substring(0, of.indexOf('(')) : of;
        int width = switch (family) {
            case "UInt8", "Int8", "Enum8", "Bool" -> 1;
            case "UInt16", "Int16" -> 2;
            case "UInt32", "Int32", "Float32" -> 4;
            case "UInt64", "Int64", "Float64", "DateTime64" -> 8;
            default -> 0;
        };
        if (width > 0) return new NumberColumn(width, nullable);
        return switch (of) {
            case "String" -> new StringColumn();
            case "LowCardinality(String)" -> new NameColumn();
            case "IPv6" -> new AddressColumn();
            case "Array(Int64)" -> new ArrayColumn();
            default -> throw new IllegalArgumentException("column " + c.name() + ": no encoding for type " + type
                    + "; add it to NativeBlockWriter");
        };
    }

    public String table() {
        return table;
    }

    public NumberColumn number(int column) {
        return (NumberColumn) columns[column];
    }

    public StringColumn string(int column) {
        return (StringColumn) columns[column];
    }

    public NameColumn name(int column) {
        return (NameColumn) columns[column];
    }

    public AddressColumn address(int column) {
        return (AddressColumn) columns[column];
    }

    public ArrayColumn array(int column) {
        return (ArrayColumn) columns[column];
    }

    @Override
    public void number(int column, long value) {
        number(column).add(value);
    }

    @Override
    public void numberOrNull(int column, Long value) {
        if (value == null) number(column).addNulls(1);
        else number(column).add(value);
    }

    @Override
    public void flag(int column, boolean value) {
        number(column).add(value ? 1 : 0);
    }

    @Override
    public void real(int column, float value) {
        number(column).add(value);
    }

    @Override
    public void real(int column, double value) {
        number(column).add(value);
    }

    @Override
    public void name(int column, String value) {
        name(column).add(value);
    }

    @Override
    public void text(int column, String value) {
        string(column).add(value);
    }

    @Override
    public void bytes(int column, byte[] value) {
        string(column).add(value);
    }

    @Override
    public void numbers(int column, long[] values) {
        array(column).add(values);
    }

    /** Rows so far, by the first column. */
    public int rows() {
        return columns[0].values();
    }

    /** Size of the block so far, about. */
    public int bytes() {
        int n = headBytes;
        for (BlockColumn c : columns) n += c.bytes();
        return n;
    }

    /** Whether a dictionary is about to overflow, so that the block must be drained before more rows come. */
    public boolean mustDrain() {
        for (BlockColumn c : columns) if (c instanceof NameColumn n && n.names() >= NameColumn.MAX_NAMES) return true;
        return false;
    }

    /** The rows collected, as one block; null when there are none. Starts afresh. */
    public RowBlock drain() {
        int rows = rows();
        if (rows == 0) return null;
        Bytes out = new Bytes(bytes() + 64);
        out.putVarint(columns.length);
        out.putVarint(rows);
        for (int i = 0; i < columns.length; i++) {
            if (columns[i].values() != rows) {
                throw new IllegalStateException(table + "." + spec.get(i).name() + " has " + columns[i].values()
                        + " values for " + rows + " rows");
            }
            out.put(heads[i], 0, heads[i].length);
            columns[i].write(out);
            columns[i].clear();
        }
        return new RowBlock(table, rows, out.size == out.data.length ? out.data : Arrays.copyOf(out.data, out.size));
    }
}
