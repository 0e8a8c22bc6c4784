package oal.stream.neighbour;

import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.metrics.Counter;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Publishes who shares each channel, with the first second after every five, if there are two access points or more;
 * withdraws the record when they have left. A record does not wait for the watermark, which a silent partition holds
 * back by its idle time; only the times of the seconds themselves count. The watermark removes access points that have
 * become silent.
 */
public final class NeighbourFunction extends KeyedProcessFunction<String, ApSecond, NeighbourRecord> {
    private static final long serialVersionUID = 1L;
    static final long INTERVAL_MS = 5000;

    private transient ValueState<ChannelState> state;
    private transient Counter recordCount;
    private transient Counter withdrawnCount;
    private transient Counter oldCount;

    @Override
    public void open(OpenContext context) {
        state = getRuntimeContext().getState(new ValueStateDescriptor<>("channel", new ChannelStateSerializer()));
        recordCount = getRuntimeContext().getMetricGroup().counter("records");
        withdrawnCount = getRuntimeContext().getMetricGroup().counter("withdrawn");
        oldCount = getRuntimeContext().getMetricGroup().counter("secondsTooOld");
    }

    @Override
    public void processElement(ApSecond second, Context context, Collector<NeighbourRecord> out) throws Exception {
        ChannelState channel = state.value();
        if (channel == null) channel = new ChannelState();
        if (!channel.add(second)) {
            oldCount.inc();
            return;
        }
        long interval = Math.floorDiv(channel.latestMs(), INTERVAL_MS);
        if (channel.interval == Long.MIN_VALUE) channel.interval = interval;
        if (interval > channel.interval) {
            channel.interval = interval;
            channel.advance(channel.latestMs());
            publish(channel, context.getCurrentKey(), out);
        }
        wake(channel, context);
        state.update(channel);
    }

    @Override
    public void onTimer(long ms, OnTimerContext context, Collector<NeighbourRecord> out) throws Exception {
        ChannelState channel = state.value();
        if (channel == null || ms != channel.timerMs) return;
        channel.timerMs = Long.MIN_VALUE;
        channel.advance(ms);
        if (channel.size() < 2) withdraw(channel, context.getCurrentKey(), out);
        if (channel.size() == 0) {
            state.clear();
            return;
        }
        wake(channel, context);
        state.update(channel);
    }

    private void publish(ChannelState channel, String key, Collector<NeighbourRecord> out) {
        if (channel.size() < 2) {
            withdraw(channel, key, out);
            return;
        }
        channel.published = true;
        recordCount.inc();
        out.collect(new NeighbourRecord(key, NeighbourJson.of(channel.latestMs(), channel.busiest())));
    }

    private void withdraw(ChannelState channel, String key, Collector<NeighbourRecord> out) {
        if (!channel.published) return;
        channel.published = false;
        withdrawnCount.inc();
        out.collect(new NeighbourRecord(key, null));
    }

    private static void wake(ChannelState channel, Context context) {
        if (channel.timerMs != Long.MIN_VALUE) return;
        channel.timerMs = channel.silentMs();
        context.timerService().registerEventTimeTimer(channel.timerMs);
    }
}
