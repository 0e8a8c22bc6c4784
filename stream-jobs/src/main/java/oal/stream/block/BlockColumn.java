package oal.stream.block;

/** One column of a Native block under construction. */
abstract class BlockColumn {
    /** Values so far. */
    abstract int values();

    /** Bytes that {@link #write} would append, about. */
    abstract int bytes();

    /** Append the column's data as ClickHouse's Native format has it. */
    abstract void write(Bytes out);

    abstract void clear();
}
