package oal.stream.operator;

import oal.stream.block.BlockOutput;
import oal.stream.block.RowBlock;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;

/**
 * An operator that collects rows into blocks over many elements. Blocks are sent when they are full, every
 * {@code flush}, at the end of input and before every checkpoint barrier. So they need no state, and each row is in the
 * output of exactly one checkpoint.
 */
public abstract class BlockOperator<OUT> extends AbstractStreamOperator<OUT> {
    private static final long serialVersionUID = 1L;

    /** Side output of every block operator. */
    public static final OutputTag<RowBlock> ROWS = new OutputTag<>("rows") {};

    protected final PipelineSettings settings;
    protected transient BlockOutput blocks;
    private transient StreamRecord<RowBlock> row;
    private transient boolean ended;

    protected BlockOperator(PipelineSettings settings) {
        this.settings = settings;
    }

    @Override
    public void open() throws Exception {
        super.open();
        blocks = new BlockOutput(settings.blockRows(), settings.blockBytes());
        row = new StreamRecord<>(null);
        flushLater();
    }

    private void flushLater() {
        getProcessingTimeService().registerTimer(getProcessingTimeService().getCurrentProcessingTime()
                + settings.flush().toMillis(), time -> {
            if (ended) return;
            flush();
            flushLater();
        });
    }

    protected void emit(RowBlock block) {
        output.collect(ROWS, row.replace(block));
    }

    private void flush() {
        blocks.drainAll(this::emit);
    }

    @Override
    public void prepareSnapshotPreBarrier(long checkpointId) throws Exception {
        super.prepareSnapshotPreBarrier(checkpointId);
        flush();
    }

    @Override
    public void finish() throws Exception {
        ended = true;
        flush();
        super.finish();
    }
}
