package oal.stream.state;

import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.InternalTimerService;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.Triggerable;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;
import oal.stream.block.BlockOutput;
import oal.stream.pipeline.PipelineSettings;
import oal.stream.sink.RowBlock;

/**
 * A keyed operator that collects rows into blocks over many elements. Blocks go out when they are full, every {@code flush}, at the end of
 * input and before every checkpoint barrier: so they are no state, and each row is in exactly one checkpoint's output.
 */
public abstract class KeyedBlockOperator<IN, OUT> extends AbstractStreamOperator<OUT>
        implements OneInputStreamOperator<IN, OUT>, Triggerable<String, VoidNamespace> {
    private static final long serialVersionUID = 1L;

    /** Side output of every block operator. */
    public static final OutputTag<RowBlock> ROWS = new OutputTag<>("rows") {};

    protected final PipelineSettings settings;
    protected transient BlockOutput blocks;
    private transient InternalTimerService<VoidNamespace> timers;
    private transient StreamRecord<RowBlock> row;
    private transient boolean ended;

    protected KeyedBlockOperator(PipelineSettings settings) {
        this.settings = settings;
    }

    @Override
    public void open() throws Exception {
        super.open();
        blocks = new BlockOutput(settings.blockRows(), settings.blockBytes());
        row = new StreamRecord<>(null);
        timers = getInternalTimerService("time", VoidNamespaceSerializer.INSTANCE, this);
        flushLater();
    }

    private void flushLater() {
        getProcessingTimeService().registerTimer(getProcessingTimeService().getCurrentProcessingTime() + settings.flush().toMillis(), time -> {
            if (ended) return;
            flush();
            flushLater();
        });
    }

    /** At event time {@code ms}, {@link #onEventTime} is called for the current key. */
    protected void wakeAt(long ms) {
        timers.registerEventTimeTimer(VoidNamespace.INSTANCE, ms);
    }

    protected long watermarkMs() {
        return timers.currentWatermark();
    }

    protected void emit(RowBlock block) {
        output.collect(ROWS, row.replace(block));
    }

    private void flush() {
        blocks.takeAll(this::emit);
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
