package oal.stream.process;

import java.util.function.LongConsumer;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.BatchHeader;
import oal.stream.codec.RefusedException;
import oal.stream.decode.AcceptedBatch;
import oal.stream.feature.Interpreter;
import oal.stream.feature.Workspace;
import oal.stream.item.Item;
import oal.stream.label.LabelWindow;
import oal.stream.label.Labeler;
import oal.stream.neighbour.Activity;
import oal.stream.operator.PipelineSettings;
import oal.stream.policy.Policies;
import oal.stream.policy.Policy;
import oal.stream.prediction.DecisionReader;
import oal.stream.prediction.PredictionJoin;
import oal.stream.state.StateSettings;

/**
 * Puts the batches of an access point in order, makes labels, features and items of them, pairs the AP's decisions with
 * the items, and adds up what the AP does each second, for its neighbours. It is pure: state comes in, results go out,
 * and time comes only as an argument.
 *
 * <p>The order is the AP's own: by incarnation and sequence number in each topic, by {@code t0_us} between the two. A
 * batch is processed at once when the next batch of each topic is there. Otherwise it waits until everything has been
 * read that the brokers received up to {@code lateness} after it; then missing batches are given up. If they come after
 * all, they are late. While an AP is in mode enforce, its events up to the batch's end are waited for likewise.
 */
final class ApProcessor {
    /** Batches and bytes that may wait per AP; beyond that the oldest is processed. */
    int mostWaiting = PipelineSettings.MOST_WAITING;
    static final long MAX_WAITING_BYTES = 16 << 20;

    /** A clock that goes back further than this was set back: its times are new, not repeated. */
    private static final long REPEAT_US = 600_000_000;

    private static final long INTERVAL_US = Settings.DECISION_INTERVAL_US;

    /** From an instant to the earliest time of its item, µs. */
    private final long itemDelayUs;
    /** From the end of a label window to its label, µs. */
    private final long lossWaitUs;
    private final long latenessMs;
    private final long decisionTimeoutMs;
    private final ApOutput out;
    private final Policies policies;
    /** Of each policy, by its place. */
    private final Workspace[] work;
    private final long[] lookbackUs;
    private final PredictionJoin.Output[] predicted;
    private final BatchDecoder[] decoder = new BatchDecoder[ApState.TOPICS];
    private final BatchDecoder events;
    private final DecisionReader reader = new DecisionReader();
    private final LongConsumer evaluated = this::evaluated;
    private final boolean[] member = new boolean[ApState.TOPICS];
    private final boolean[] continued = new boolean[ApState.TOPICS];
    /** During a call: the access point that it is about. */
    private ApState ap;
    private String apId;

    ApProcessor(Policies policies, long latenessMs, ApOutput out) {
        this(policies, latenessMs, out, StateSettings.NOW);
    }

    ApProcessor(Policies policies, long latenessMs, ApOutput out, StateSettings settings) {
        itemDelayUs = settings.delay() * INTERVAL_US;
        lossWaitUs = settings.lossWait() * INTERVAL_US;
        this.latenessMs = latenessMs;
        // The batches that complete an item may themselves wait for as long again.
        decisionTimeoutMs = itemDelayUs / 1000 + 2 * latenessMs + PredictionJoin.SILENCE_MS;
        this.out = out;
        this.policies = policies;
        work = new Workspace[policies.size()];
        lookbackUs = new long[work.length];
        predicted = new PredictionJoin.Output[work.length];
        boolean[][] wanted = BatchDecoder.noColumns();
        for (int i = 0; i < work.length; i++) {
            Policy policy = policies.get(i);
            work[i] = new Workspace(policy.program);
            lookbackUs[i] = policy.program.lookback() * INTERVAL_US;
            predicted[i] = (decision, outcome) -> out.prediction(ap, policy, decision, outcome);
            policy.program.wants(wanted);
        }
        Labeler.wants(wanted);
        Activity.wants(wanted);
        for (int t = 0; t < decoder.length; t++) decoder[t] = BatchDecoder.only(wanted);
        boolean[][] decisions = BatchDecoder.noColumns();
        DecisionReader.wants(decisions);
        ControlHistory.wants(decisions);
        events = BatchDecoder.only(decisions);
    }

    void accept(ApState state, AcceptedBatch batch, long watermarkMs) {
        adopt(state);
        state.lastMs = Math.max(state.lastMs, batch.kafkaTsMs);
        if (batch.topic == Topic.EVENTS.ordinal()) {
            decisions(state, batch, watermarkMs);
            return;
        }
        state.topicMs[batch.topic] = batch.kafkaTsMs;
        state.boots.note(batch.bootId);
        if (!state.queue[batch.topic].add(batch)) {
            out.late(batch, state.coverage[batch.topic].untilUs() - batch.endUs);
            return;
        }
        release(state, watermarkMs);
    }

    /** State that was restored may be of other policies. */
    private void adopt(ApState state) {
        ap = state;
        for (PolicyState gone : state.adopt(policies)) {
            gone.predictions.end((decision, outcome) -> out.prediction(state, gone.policy, decision, outcome));
        }
        ap = null;
    }

    private void decisions(ApState state, AcceptedBatch batch, long watermarkMs) {
        state.boots.note(batch.bootId);
        state.site = batch.site;
        decode(events, Topic.EVENTS, batch);
        ap = state;
        if (policies.ofDestination(events.header().featureHash)) {
            out.decisionsUnpaired(events.table(Tables.DECISION.id()).rows);
        } else {
            pair(state, batch.kafkaTsMs);
        }
        state.control.add(events, batch.kafkaTsMs);
        release(state, watermarkMs);
    }

    private void pair(ApState state, long kafkaMs) {
        int named = policies.withProgram(events.header().featureHash);
        int place = Math.max(named, 0); // of a program that nobody here has: rwnd-fair's, without comparing vectors
        int refused = reader.read(events, kafkaMs, named >= 0,
                d -> state.of(place).predictions.decided(d, predicted[place]));
        if (refused > 0) out.decisionsRefused(refused);
    }

    private void expire(ApState state, long watermarkMs) {
        ap = state;
        for (int i = 0; i < work.length; i++) {
            state.of(i).predictions.expire(watermarkMs, decisionTimeoutMs, predicted[i]);
        }
        ap = null;
    }

    /**
     * Event time has reached {@code watermarkMs}: process every batch that is ready or has waited long enough, and emit
     * decisions that have waited long enough.
     */
    void release(ApState state, long watermarkMs) {
        adopt(state);
        releaseBatches(state, watermarkMs);
        expire(state, watermarkMs);
    }

    /** The access point's state is dropped: emit the waiting decisions without an item. */
    void end(ApState state) {
        adopt(state);
        ap = state;
        for (int i = 0; i < work.length; i++) state.of(i).predictions.end(predicted[i]);
        ap = null;
    }

    private void releaseBatches(ApState state, long jobWatermarkMs) {
        // A topic of an AP is one partition and is read in order, so everything before its latest batch has been read.
        long topicsMs = Math.min(state.topicMs[0], state.topicMs[1]);
        while (true) {
            AcceptedBatch a = state.queue[0].head();
            AcceptedBatch b = state.queue[1].head();
            if (a == null && b == null) return;
            int order = a == null ? 1 : b == null ? -1 : compare(state, a, b);
            member[0] = order <= 0;
            member[1] = order >= 0;
            boolean controlKnown = state.control.knows(Math.max(member[0] ? a.endUs : 0, member[1] ? b.endUs : 0));
            boolean ready = controlKnown && state.queue[0].headFollows() && state.queue[1].headFollows();
            long readMs = controlKnown ? topicsMs : Math.min(topicsMs, state.control.heardMs());
            if (!ready && deadline(a, b) > Math.max(jobWatermarkMs, readMs - 1) && !full(state)) return;
            process(state);
        }
    }

    /**
     * Broker's time, ms, at which {@link #release} has something to do, or earlier; {@code Long.MAX_VALUE} if nothing
     * waits.
     */
    long deadlineMs(ApState state) {
        long ms = batchDeadlineMs(state);
        for (int i = 0; i < state.policies(); i++) {
            ms = Math.min(ms, state.of(i).predictions.deadlineMs(decisionTimeoutMs));
        }
        return ms;
    }

    private long batchDeadlineMs(ApState state) {
        AcceptedBatch a = state.queue[0].head();
        AcceptedBatch b = state.queue[1].head();
        if (a == null && b == null) return Long.MAX_VALUE;
        int order = a == null ? 1 : b == null ? -1 : compare(state, a, b);
        member[0] = order <= 0;
        member[1] = order >= 0;
        return deadline(a, b);
    }

    private long deadline(AcceptedBatch a, AcceptedBatch b) {
        long ms = Long.MAX_VALUE;
        if (member[0]) ms = Math.min(ms, a.kafkaTsMs);
        if (member[1]) ms = Math.min(ms, b.kafkaTsMs);
        return ms + latenessMs;
    }

    private static int compare(ApState state, AcceptedBatch a, AcceptedBatch b) {
        if (a.bootId != b.bootId) return Integer.compare(state.boots.order(a.bootId), state.boots.order(b.bootId));
        return Long.compare(a.t0Us, b.t0Us);
    }

    private boolean full(ApState state) {
        return state.waiting() > mostWaiting
                || (state.waiting() > 2 && state.queue[0].bytes() + state.queue[1].bytes() > MAX_WAITING_BYTES);
    }

    /** Process the heads that are marked as members: they have the same incarnation and {@code t0_us}. */
    private void process(ApState state) {
        ap = state;
        BatchHeader first = null;
        long samplesMs = 0;
        for (int t = 0; t < member.length; t++) {
            if (!member[t]) continue;
            AcceptedBatch b = state.queue[t].poll();
            if (t == Topic.SAMPLES.ordinal()) samplesMs = b.kafkaTsMs;
            decode(decoder[t], t == Topic.SAMPLES.ordinal() ? Topic.SAMPLES : Topic.PACKETS, b);
            BatchHeader header = decoder[t].header();
            if (passed(state, t, header)) {
                member[t] = false;
                out.late(b, state.first().features.next() - INTERVAL_US - header.endUs());
                continue;
            }
            if (first == null) {
                first = decoder[t].header();
                apId = b.apId;
                state.site = b.site;
            }
        }
        if (first == null) {
            ap = null;
            return;
        }
        if (!state.started || first.bootId != state.bootId) {
            state.started = true;
            state.bootId = first.bootId;
            state.labels.clear();
            for (Coverage c : state.coverage) c.clear();
        }
        for (int t = 0; t < member.length; t++) {
            continued[t] = member[t] && state.coverage[t].continues(decoder[t].header());
            if (continued[t]) state.coverage[t].extend(decoder[t].header());
        }
        Interpreter leader = state.first().features;
        if (leader.begin(work[0], first.bootId, first.t0Us, evaluated)) {
            state.labels.restart(leader.firstInstant());
            for (int i = 0; i < work.length; i++) state.of(i).items.clear();
            state.lastHoleUs = Long.MIN_VALUE; // the first interval after a restart is not covered and sets it again
        }
        for (int i = 1; i < work.length; i++) state.of(i).features.follow(work[i], leader);
        for (int t = 0; t < member.length; t++) {
            if (!member[t]) continue;
            if (!continued[t]) state.coverage[t].restart(decoder[t].header());
            state.coverage[t].note(decoder[t].header());
            Topic topic = t == Topic.SAMPLES.ordinal() ? Topic.SAMPLES : Topic.PACKETS;
            state.labels.add(topic, decoder[t], loss -> out.loss(state, apId, loss));
            for (int i = 0; i < work.length; i++) state.of(i).features.add(topic, decoder[t]);
        }
        long lastUs = leader.lastUs();
        for (int i = 1; i < work.length; i++) lastUs = Math.max(lastUs, state.of(i).features.lastUs());
        leader.end(lastUs, evaluated);
        for (int i = 1; i < work.length; i++) state.of(i).features.finish();
        if (member[0]) active(state, decoder[0], continued[0], samplesMs);
        ap = null;
    }

    private void active(ApState state, BatchDecoder samples, boolean follows, long takenMs) {
        if (!follows) state.activity.clear();
        state.activity.add(samples);
        state.activity.drain(second -> {
            second.apId = apId;
            second.site = state.site;
            second.takenMs = takenMs;
            out.second(second);
        });
    }

    /**
     * Have labels and features already passed this batch? Then the other topic is ahead. If the time of its own topic
     * goes back, the AP's clock was set back, and the batch is not late.
     */
    private static boolean passed(ApState state, int t, BatchHeader h) {
        if (!state.started) return false;
        if (h.bootId != state.bootId) return state.boots.order(h.bootId) < state.boots.order(state.bootId);
        return h.endUs() <= state.first().features.next() - INTERVAL_US && !state.coverage[t].wentBack(h);
    }

    private static void decode(BatchDecoder decoder, Topic topic, AcceptedBatch b) {
        try {
            decoder.decode(topic, b.value);
        } catch (RefusedException e) {
            throw new IllegalStateException("a batch of " + b.apId + " that was accepted is now refused: "
                    + e.reason.label() + ": " + e.getMessage(), e);
        }
    }

    private void evaluated(long instant) {
        boolean covered = ap.coverage[0].covers(instant - INTERVAL_US, instant)
                && ap.coverage[1].covers(instant - INTERVAL_US, instant);
        if (!covered) ap.lastHoleUs = instant;
        LabelWindow window = ap.labels.close(instant, covered);
        ap.activity.ended(window);
        // An instant is given out once. Instants repeat when a clock was set back or a topic was overtaken.
        boolean again = instant <= ap.givenUs && instant > ap.givenUs - REPEAT_US;
        if (!again && window.whole) out.label(ap, apId, window);
        for (int i = 0; i < work.length; i++) evaluated(i, instant, again, window);
        if (!again) ap.givenUs = instant;
        ap.control.passed(instant - itemDelayUs);
    }

    /** One policy's part of an instant: the leader has evaluated it, and the others do so now. */
    private void evaluated(int place, long instant, boolean again, LabelWindow window) {
        PolicyState s = ap.of(place);
        Item item = null;
        if (place == 0 || s.features.at(instant)) {
            long holeUs = place == 0 ? ap.lastHoleUs : Math.max(ap.lastHoleUs, s.features.firstInstant());
            boolean complete = holeUs == Long.MIN_VALUE || instant - holeUs >= lookbackUs[place];
            item = s.items.next(instant, ap.bootId, s.features.features(), complete, s.features.lacksInput(), window,
                    ap.labels);
        }
        if (again) item = null;
        long endUs = instant - lossWaitUs;
        if (item != null) item.control(ap.control.acted(endUs - Settings.LABEL_WINDOW_US, endUs));
        s.predictions.passed(ap.bootId, instant - itemDelayUs, item, ap.lastMs + latenessMs, predicted[place]);
        if (item != null) out.item(ap, apId, s.policy, item);
    }
}
