package oal.stream.process;

import oal.schema.Settings;
import oal.stream.decode.AcceptedBatch;
import oal.stream.item.Item;
import oal.stream.item.ItemJson;
import oal.stream.item.ItemRows;
import oal.stream.item.TrainingItem;
import oal.stream.label.LabelRows;
import oal.stream.label.LabelWindow;
import oal.stream.label.Loss;
import oal.stream.label.LossRows;
import oal.stream.neighbour.ApSecond;
import oal.stream.operator.KeyedBlockOperator;
import oal.stream.operator.PipelineSettings;
import oal.stream.policy.Policies;
import oal.stream.policy.Policy;
import oal.stream.prediction.Decision;
import oal.stream.prediction.Outcome;
import oal.stream.prediction.PredictionRows;
import oal.stream.state.StateSettings;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.metrics.Counter;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;

/**
 * Labels, features, items and predictions of each access point, from its batches. Output: training items. Side outputs:
 * rows of label, loss_event, item, prediction and late; what each access point did in a second.
 */
public final class ApOperator extends KeyedBlockOperator<TrainingItem> implements OneInputStreamOperator<AcceptedBatch,
        TrainingItem> {
    private static final long serialVersionUID = 1L;

    /** For the access point's neighbours. */
    public static final OutputTag<ApSecond> SECONDS = new OutputTag<>("seconds") {};

    /** So much of one topic of the busiest access point can wait for its other one, ms. */
    public static final long HOLDS_MS = 512L * Settings.BATCH_TICKS * Settings.TICK_US / 1000;

    private transient ValueState<ApState> state;
    private transient ApProcessor processor;
    private final Policies policies;
    private final StateSettings shape;

    public ApOperator(PipelineSettings settings, Policies policies) {
        this(settings, policies, StateSettings.NOW);
    }

    /** With settings that the job was not built with, as a job of another time. */
    ApOperator(PipelineSettings settings, Policies policies, StateSettings shape) {
        super(settings);
        this.shape = shape;
        this.policies = policies;
    }

    @Override
    public void open() throws Exception {
        super.open();
        state = getRuntimeContext().getState(new ValueStateDescriptor<>("ap", new ApStateSerializer(policies, shape)));
        processor = new ApProcessor(policies, settings.lateness().toMillis(), new Rows(), shape);
        processor.mostWaiting = settings.mostWaiting();
    }

    @Override
    public void processElement(StreamRecord<AcceptedBatch> element) throws Exception {
        ApState ap = state.value();
        if (ap == null) ap = new ApState(policies, shape);
        processor.accept(ap, element.getValue(), watermarkMs());
        if (ap.endTimerMs == Long.MIN_VALUE) {
            ap.endTimerMs = ap.lastMs + settings.stateTtl().toMillis();
            wakeAt(ap.endTimerMs);
        }
        done(ap);
    }

    @Override
    public void onEventTime(InternalTimer<String, VoidNamespace> timer) throws Exception {
        ApState ap = state.value();
        if (ap == null) return;
        if (timer.getTimestamp() == ap.waitTimerMs) ap.waitTimerMs = Long.MIN_VALUE;
        processor.release(ap, timer.getTimestamp());
        if (timer.getTimestamp() == ap.endTimerMs) {
            long end = ap.lastMs + settings.stateTtl().toMillis();
            if (end <= timer.getTimestamp()) {
                processor.end(ap);
                state.clear();
                blocks.drainFull(this::emit);
                return;
            }
            ap.endTimerMs = end;
            wakeAt(end);
        }
        done(ap);
    }

    private void done(ApState ap) throws Exception {
        long deadline = processor.deadlineMs(ap);
        if (deadline != Long.MAX_VALUE && (ap.waitTimerMs == Long.MIN_VALUE || ap.waitTimerMs > deadline)) {
            ap.waitTimerMs = deadline;
            wakeAt(deadline);
        }
        state.update(ap);
        blocks.drainFull(this::emit);
    }

    @Override
    public void onProcessingTime(InternalTimer<String, VoidNamespace> timer) {
        throw new IllegalStateException("no processing-time timer is ever set");
    }

    /** Results to rows and records. */
    private final class Rows implements ApOutput {
        private final LabelRows labels = new LabelRows();
        private final LossRows losses = new LossRows();
        private final ItemRows items = new ItemRows();
        private final PredictionRows predictions = new PredictionRows();
        private final LateRows lates = new LateRows();
        private final ItemJson json = new ItemJson();
        private final StreamRecord<TrainingItem> record = new StreamRecord<>(null);
        private final Counter labelCount = getMetricGroup().counter("labels");
        private final Counter lossCount = getMetricGroup().counter("losses");
        private final Counter itemCount = getMetricGroup().counter("items");
        private final Counter predictionCount = getMetricGroup().counter("predictions");
        private final Counter aloneCount = getMetricGroup().counter("predictionsWithoutItem");
        private final Counter decisionsRefusedCount = getMetricGroup().counter("decisionsRefused");
        private final Counter decisionsUnpairedCount = getMetricGroup().counter("decisionsUnpaired");
        private final Counter secondCount = getMetricGroup().counter("seconds");
        private final Counter secondsUnnamedCount = getMetricGroup().counter("secondsWithoutSite");
        private final Counter lateCount = getMetricGroup().counter("late");

        Rows() {
            blocks.add(labels.writer);
            blocks.add(losses.writer);
            blocks.add(items.writer);
            blocks.add(predictions.writer);
            blocks.add(lates.writer);
        }

        @Override
        public void label(ApState ap, String apId, LabelWindow window) {
            labelCount.inc();
            labels.add(apId, ap.site, window);
        }

        @Override
        public void loss(ApState ap, String apId, Loss loss) {
            lossCount.inc();
            losses.add(apId, ap.site, ap.bootId, loss);
        }

        @Override
        public void item(ApState ap, String apId, Policy policy, Item item) {
            itemCount.inc();
            items.add(apId, ap.site, policy.name, policy.featureHash, item);
            output.collect(record.replace(json.of(apId, ap.site, policy.name, policy.featureHash, item)));
        }

        @Override
        public void prediction(ApState ap, Policy policy, Decision decision, Outcome outcome) {
            predictionCount.inc();
            if (outcome == null) aloneCount.inc();
            predictions.add((String) getCurrentKey(), ap.site, policy.name, decision, outcome);
        }

        @Override
        public void decisionsRefused(int decisions) {
            decisionsRefusedCount.inc(decisions);
        }

        @Override
        public void decisionsUnpaired(int decisions) {
            decisionsUnpairedCount.inc(decisions);
        }

        @Override
        public void second(ApSecond second) {
            secondCount.inc();
            if (second.named()) output.collect(SECONDS, new StreamRecord<>(second));
            else secondsUnnamedCount.inc();
        }

        @Override
        public void late(AcceptedBatch batch, long lateUs) {
            lateCount.inc();
            lates.add(batch, lateUs);
        }
    }
}
