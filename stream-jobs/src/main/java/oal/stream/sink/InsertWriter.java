package oal.stream.sink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.UUID;
import oal.stream.block.RowBlock;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.metrics.MetricGroup;

/**
 * Collects blocks per table between two checkpoints and hands them over as {@link Insert}s at each.
 *
 * <p>How much is held is bounded where batches are read ({@code sink.held.max.bytes}).
 *
 * <p>A token names this incarnation of the writer by a random id, then counts. It need not be the same in the next
 * incarnation: an insert is only ever sent from a completed checkpoint, which holds its token, and what came after that
 * checkpoint was never sent. A token made of checkpoint numbers would be worse: after a restore from an older
 * checkpoint it would come back with other rows behind it, and ClickHouse would drop them.
 */
final class InsertWriter implements CommittingSinkWriter<RowBlock, Insert> {
    private final SinkLimits limits;
    private final String incarnation;
    private final long madeAfter;
    private final Map<String, InsertBuffer> open = new TreeMap<>();
    private final List<Insert> closed = new ArrayList<>();
    private long closedBytes;
    private long openBytes;
    private long made;

    InsertWriter(SinkLimits limits, int subtask, OptionalLong restoredCheckpoint, MetricGroup metrics) {
        this.limits = limits;
        this.incarnation = UUID.randomUUID() + "-" + subtask;
        this.madeAfter = restoredCheckpoint.orElse(-1);
        metrics.gauge("clickhouseHeldBytes", () -> closedBytes + openBytes);
    }

    @Override
    public void write(RowBlock block, Context context) throws IOException {
        InsertBuffer buffer = open.computeIfAbsent(block.table, table -> new InsertBuffer());
        // A block is never split: its rows are in one insert, and so in one part of the table per partition.
        if (buffer.rows() > 0
                && (buffer.rows() + (long) block.rows > limits.maxInsertRows() || buffer.rawBytes()
                        + block.data.length > limits.maxInsertBytes())) {
            close(block.table, buffer);
            buffer = new InsertBuffer();
            open.put(block.table, buffer);
        }
        long before = buffer.heldBytes();
        buffer.add(block);
        openBytes += buffer.heldBytes() - before;
    }

    @Override
    public void flush(boolean endOfInput) {
        // Nothing is sent before the checkpoint is complete.
    }

    @Override
    public Collection<Insert> prepareCommit() throws IOException {
        for (Map.Entry<String, InsertBuffer> entry : open.entrySet()) close(entry.getKey(), entry.getValue());
        open.clear();
        List<Insert> inserts = new ArrayList<>(closed);
        closed.clear();
        closedBytes = 0;
        openBytes = 0;
        return inserts;
    }

    private void close(String table, InsertBuffer buffer) throws IOException {
        openBytes -= buffer.heldBytes();
        byte[] body = buffer.finish();
        closedBytes += body.length;
        closed.add(new Insert(incarnation + "-" + made++ + "-" + table, table, buffer.rows(), madeAfter, body));
    }

    @Override
    public void close() {
        open.clear();
        closed.clear();
    }
}
