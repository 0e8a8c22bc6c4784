package oal.stream.process;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import oal.schema.Topic;
import oal.stream.feature.Input;
import oal.stream.label.Labeler;
import oal.stream.neighbour.Activity;
import oal.stream.policy.Policies;
import oal.stream.policy.Policy;
import oal.stream.state.DataText;
import oal.stream.state.StateSettings;

/** All that the job remembers about one access point between batches. */
final class ApState {
    /** Topics that labels and features are made of. */
    static final int TOPICS = 2;

    /** Layout of the bytes that {@link #write} gives: with when losses were dropped. */
    private static final int VERSION = 8;
    /** Layout of the version before, with what policies did; a loss is of the window in which it was sent again. */
    private static final int WITHOUT_DROPS = 7;
    /** Layout of the one before that, with the settings that shape the bytes, and further policies always. */
    private static final int WITHOUT_CONTROL = 6;
    /** Layout of the one before that: it does not say its settings, so they are {@link StateSettings#UNSAID}. */
    private static final int WITHOUT_SETTINGS = 5;
    /** Layout of that version with one policy. */
    private static final int ONE_POLICY = 4;
    /** Layout of the version before: it holds no activity of the second under way. */
    private static final int WITHOUT_ACTIVITY = 3;
    /** Layout of the one before that: it holds no decisions either. The oldest that is read. */
    private static final int WITHOUT_DECISIONS = 2;

    private final StateSettings settings;
    private Policies policies;
    /** In the order of {@link #policies}. */
    private PolicyState[] of;
    final Incarnations boots = new Incarnations();
    final BatchQueue[] queue = {new BatchQueue(boots), new BatchQueue(boots)};
    final Coverage[] coverage = {new Coverage(), new Coverage()};
    private final Input input = new Input() {
        @Override
        public boolean came(Topic topic, long fromUs, long untilUs) {
            return topic.ordinal() < TOPICS && coverage[topic.ordinal()].came(fromUs, untilUs);
        }

        @Override
        public boolean began(Topic topic, long fromUs) {
            return topic.ordinal() < TOPICS && coverage[topic.ordinal()].began(fromUs);
        }
    };
    final Labeler labels;
    final Activity activity = new Activity();
    final ControlHistory control = new ControlHistory();
    String site = "";
    boolean started;
    long bootId;
    /** Latest instant whose interval was not covered by both topics, µs. */
    long lastHoleUs = Long.MIN_VALUE;
    /** Latest instant that labels and items were given out, µs. */
    long givenUs = Long.MIN_VALUE;
    /** Broker's time of the latest batch of each topic, ms. */
    final long[] topicMs = {Long.MIN_VALUE + 1, Long.MIN_VALUE + 1};
    /** Broker's time of the latest batch, ms. */
    long lastMs = Long.MIN_VALUE;
    /** When timers were set for, ms: to stop waiting, and to drop this state. */
    long waitTimerMs = Long.MIN_VALUE;
    long endTimerMs = Long.MIN_VALUE;

    ApState(Policies policies) {
        this(policies, StateSettings.NOW);
    }

    ApState(Policies policies, StateSettings settings) {
        this.settings = settings;
        this.policies = policies;
        labels = new Labeler(settings);
        of = new PolicyState[policies.size()];
        for (int i = 0; i < of.length; i++) of[i] = state(policies.get(i));
        if (Topic.SAMPLES.ordinal() >= TOPICS || Topic.PACKETS.ordinal() >= TOPICS) {
            throw new IllegalStateException("samples and packets must be the first two topics");
        }
    }

    private PolicyState state(Policy policy) {
        return new PolicyState(policy, boots::order, input, settings);
    }

    /** Of the policy whose instants are everyone's. */
    PolicyState first() {
        return of[0];
    }

    PolicyState of(int place) {
        return of[place];
    }

    int policies() {
        return of.length;
    }

    /**
     * From now on these are the policies. What is remembered for one of them, by name and program, is kept; under
     * another program only the decisions that wait are.
     *
     * @return what is remembered for policies that are not among them
     */
    List<PolicyState> adopt(Policies now) {
        if (policies == now) return List.of();
        List<PolicyState> before = new ArrayList<>(List.of(of));
        of = new PolicyState[now.size()];
        for (int i = 0; i < of.length; i++) {
            Policy policy = now.get(i);
            PolicyState same = null;
            for (PolicyState s : before) if (s.policy.name.equals(policy.name)) same = s;
            before.remove(same);
            if (same == null) of[i] = state(policy);
            else of[i] = same.policy.same(policy) ? same : new PolicyState(policy, same.predictions, input, settings);
        }
        policies = now;
        return before;
    }

    int waiting() {
        return queue[0].size() + queue[1].size();
    }

    void write(DataOutput out) throws IOException {
        out.writeByte(VERSION);
        settings.write(out);
        DataText.write(out, site);
        out.writeBoolean(started);
        out.writeLong(bootId);
        out.writeLong(lastHoleUs);
        out.writeLong(givenUs);
        for (long ms : topicMs) out.writeLong(ms);
        out.writeLong(lastMs);
        out.writeLong(waitTimerMs);
        out.writeLong(endTimerMs);
        boots.write(out);
        for (int t = 0; t < TOPICS; t++) {
            queue[t].write(out);
            coverage[t].write(out);
        }
        labels.write(out);
        first().items.write(out);
        first().predictions.write(out);
        activity.write(out);
        FurtherPolicies.write(out, of);
        control.write(out);
        out.writeLong(first().policy.featureHash);
        first().features.write(out);
    }

    /**
     * Reads what {@link #write} wrote, in this version or the six before. State of another feature program cannot be
     * used: features then restart, labels go on. So it is with a policy that is new; one that has gone is left out.
     * What other settings shaped is dropped.
     */
    static ApState read(DataInput in, Policies policies, StateSettings settings) throws IOException {
        int version = in.readUnsignedByte();
        if (version < WITHOUT_DECISIONS || version > VERSION) {
            throw new IOException("state of an access point has version " + version + "; this job reads "
                    + WITHOUT_DECISIONS + " to " + VERSION);
        }
        StateSettings was = version > WITHOUT_SETTINGS ? StateSettings.read(in, version > WITHOUT_DROPS)
                : StateSettings.UNSAID;
        was.requireReadableBy(settings);
        ApState s = new ApState(policies, settings);
        s.site = DataText.read(in);
        s.started = in.readBoolean();
        s.bootId = in.readLong();
        s.lastHoleUs = in.readLong();
        s.givenUs = in.readLong();
        for (int t = 0; t < TOPICS; t++) s.topicMs[t] = in.readLong();
        s.lastMs = in.readLong();
        s.waitTimerMs = in.readLong();
        s.endTimerMs = in.readLong();
        s.boots.read(in);
        for (int t = 0; t < TOPICS; t++) {
            s.queue[t].read(in);
            s.coverage[t].read(in);
        }
        s.labels.read(in, was);
        s.first().items.read(in, was);
        if (version > WITHOUT_DECISIONS) s.first().predictions.read(in, was);
        if (version > WITHOUT_ACTIVITY) s.activity.read(in);
        if (version > ONE_POLICY) FurtherPolicies.read(in, s.of, was);
        if (version > WITHOUT_CONTROL) s.control.read(in);
        if (in.readLong() == s.first().policy.featureHash) {
            s.first().features.read(in);
        } else {
            s.first().items.clear();
            skipRest(in); // features of another program come last
        }
        return s;
    }

    private static void skipRest(DataInput in) throws IOException {
        int all = Integer.MAX_VALUE; // the state of one access point is a byte array, so it is never longer
        in.skipBytes(all);
    }
}
