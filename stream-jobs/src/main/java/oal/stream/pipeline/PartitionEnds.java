package oal.stream.pipeline;

import java.util.List;

/**
 * How far the partitions of a reader go, as the brokers say. Nothing here waits: what is not known yet is unknown.
 *
 * @param <SplitT> a partition with the place where reading began
 */
public interface PartitionEnds<SplitT> extends AutoCloseable {
    /** An answer of the brokers. {@code askedMs}: when they were asked; what came later is not in it. */
    record End(long offset, long askedMs) {}

    /** These partitions are read from now on. */
    void watch(List<SplitT> splits);

    /** Asks anew, unless an answer is awaited or was given just now. */
    void refresh(long nowMs);

    /** Offset after the partition's last record; null: the brokers have not said. */
    End end(String splitId);

    /** Offset at which reading began; negative: not known. */
    long start(String splitId);

    /** When the brokers were asked for the latest answer about any of the partitions, ms; Long.MIN_VALUE: never. */
    long answeredMs();

    @Override
    void close();
}
