package oal.stream.operator;

import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.streaming.api.operators.InternalTimerService;
import org.apache.flink.streaming.api.operators.Triggerable;

/** A {@link BlockOperator} with state and timers per access point. */
public abstract class KeyedBlockOperator<OUT> extends BlockOperator<OUT> implements Triggerable<String, VoidNamespace> {
    private static final long serialVersionUID = 1L;

    private transient InternalTimerService<VoidNamespace> timers;

    protected KeyedBlockOperator(PipelineSettings settings) {
        super(settings);
    }

    @Override
    public void open() throws Exception {
        super.open();
        timers = getInternalTimerService("time", VoidNamespaceSerializer.INSTANCE, this);
    }

    /** At event time {@code ms}, {@link #onEventTime} is called for the current key. */
    protected void wakeAt(long ms) {
        timers.registerEventTimeTimer(VoidNamespace.INSTANCE, ms);
    }

    protected long watermarkMs() {
        return timers.currentWatermark();
    }
}
