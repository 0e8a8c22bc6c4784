package oal.stream.sink;

import java.io.Serializable;

/**
 * @param maxInsertBytes uncompressed bytes at which an insert is closed and another begun for the same table
 * @param maxInsertRows rows at which an insert is closed. Below ClickHouse's own limit of one block, so that one token
 *     covers one block
 * @param insertThreads inserts of one committer at the same time (different tables)
 */
public record SinkLimits(long maxInsertBytes, int maxInsertRows, int insertThreads)
        implements Serializable {
    public static final SinkLimits DEFAULT = new SinkLimits(64L << 20, 500_000, 4);

    public SinkLimits {
        if (maxInsertBytes <= 0) throw new IllegalArgumentException("sink.insert.max.bytes must be positive");
        if (maxInsertRows <= 0 || maxInsertRows > 1_000_000) {
            throw new IllegalArgumentException("sink.insert.max.rows must be 1 to 1000000");
        }
        if (insertThreads <= 0) throw new IllegalArgumentException("sink.insert.threads must be positive");
    }
}
