package oal.stream.block;

/**
 * Rows of one table, encoded for {@code INSERT INTO oal.<table> FORMAT Native}: one or more whole Native blocks, one
 * after another. Blocks name their columns, so an insert needs no column list. Blocks of one table can be concatenated
 * into one insert.
 */
public class RowBlock {
    /** Table's name without the database. */
    public String table;
    /** Rows in all blocks of {@link #data}. */
    public int rows;
    public byte[] data;

    /** For Flink's serializer. */
    public RowBlock() {}

    public RowBlock(String table, int rows, byte[] data) {
        if (table == null || table.isEmpty()) throw new IllegalArgumentException("a row block needs a table");
        if (rows <= 0) throw new IllegalArgumentException("a row block of " + table + " needs rows, not " + rows);
        if (data == null || data.length == 0) {
            throw new IllegalArgumentException("a row block of " + table + " needs data");
        }
        this.table = table;
        this.rows = rows;
        this.data = data;
    }

    @Override
    public String toString() {
        return "RowBlock{" + table + ", " + rows + " rows, " + (data == null ? 0 : data.length) + " bytes}";
    }
}
