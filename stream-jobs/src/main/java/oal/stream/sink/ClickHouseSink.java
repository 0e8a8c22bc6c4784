package oal.stream.sink;

import java.io.IOException;
import oal.stream.block.RowBlock;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * Row blocks into ClickHouse, each exactly once. Blocks are collected between checkpoints and stored in the checkpoint
 * as {@link Insert}s, each with a token. They are sent when the checkpoint is complete. After a failure they are sent
 * again from the checkpoint, and the token makes the repetition harmless. Rows become visible about one checkpoint
 * interval after they came.
 */
public final class ClickHouseSink implements Sink<RowBlock>, SupportsCommitter<Insert> {
    private static final long serialVersionUID = 1;

    private final ClickHouseTarget target;
    private final SinkLimits limits;

    public ClickHouseSink(ClickHouseTarget target, SinkLimits limits) {
        this.target = target;
        this.limits = limits;
    }

    @Override
    public SinkWriter<RowBlock> createWriter(WriterInitContext context) {
        return new InsertWriter(limits, context.getTaskInfo().getIndexOfThisSubtask(),
                context.getRestoredCheckpointId(), context.metricGroup());
    }

    @Override
    public Committer<Insert> createCommitter(CommitterInitContext context) throws IOException {
        return new InsertCommitter(target, limits, context.getRestoredCheckpointId(), context.metricGroup());
    }

    @Override
    public SimpleVersionedSerializer<Insert> getCommittableSerializer() {
        return new InsertSerializer();
    }
}
