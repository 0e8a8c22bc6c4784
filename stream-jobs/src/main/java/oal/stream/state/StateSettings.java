package oal.stream.state;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.StringJoiner;
import oal.schema.Settings;

/**
 * Settings of schema/settings.yaml that say what the numbers in an access point's state mean and how many there are.
 *
 * @param lossWaitUs how long a label waits for its losses to be sent again; {@link #AT_REPETITION}: it counts them then
 * @param classBoundsPermille where one class of a label ends and the next begins
 */
public record StateSettings(int tickUs, int decisionIntervalUs, int horizonUs, int labelWindowUs,
        int lossWaitUs, List<Integer> classBoundsPermille) implements Serializable {
    private static final long serialVersionUID = 1L;

    /** Labels of earlier versions: a loss is of the window in which it was sent again, and no window waits. */
    public static final int AT_REPETITION = -1;

    /** Those of every state that does not say its settings: no version before had others. */
    public static final StateSettings UNSAID = new StateSettings(4000, 100_000, 200_000, 1_000_000,
            AT_REPETITION, List.of(10, 50, 120));
    /** Those that the job was built with. */
    public static final StateSettings NOW = new StateSettings(Settings.TICK_US, Settings.DECISION_INTERVAL_US,
            Settings.HORIZON_US, Settings.LABEL_WINDOW_US, Settings.LOSS_WAIT_US,
            Arrays.stream(Settings.classBoundsPermille()).boxed().toList());

    public StateSettings {
        if (horizonUs % decisionIntervalUs != 0 || labelWindowUs % decisionIntervalUs != 0
                || Math.max(0, lossWaitUs) % decisionIntervalUs != 0) {
            throw new IllegalArgumentException("horizon, label window and loss wait must be multiples of the decision "
                    + "interval");
        }
        classBoundsPermille = List.copyOf(classBoundsPermille);
    }

    /** Decision intervals in a label window. */
    public int window() {
        return labelWindowUs / decisionIntervalUs;
    }

    /** Is a loss of the window in which it was dropped? */
    public boolean stampsDrops() {
        return lossWaitUs != AT_REPETITION;
    }

    /** Decision intervals from the end of a label window to its label. */
    public int lossWait() {
        return Math.max(0, lossWaitUs) / decisionIntervalUs;
    }

    /** Instants from the features of an item to the label of the window that came true. */
    public int delay() {
        return (horizonUs + labelWindowUs) / decisionIntervalUs + lossWait();
    }

    /**
     * IllegalStateException, in words for the operator of the job, if state with these settings cannot be taken over
     * by a job with those of {@code now}: everything in it is counted in ticks and decision intervals.
     */
    public void requireReadableBy(StateSettings now) {
        if (tickUs == now.tickUs && decisionIntervalUs == now.decisionIntervalUs) return;
        throw new IllegalStateException("the checkpoint or savepoint was made with " + changes(now)
                + " (schema/settings.yaml): every access point's windows and vectors are counted in it, so their state "
                + "cannot be taken over. Either start the job that was built with the old value, or start afresh: "
                + "without a checkpoint (no -s, no initialSavepointPath, an empty high-availability directory). The "
                + "job then reads on from its consumer group's offsets, and the features of each access point begin "
                + "anew");
    }

    /** What differs, as {@code name = old, now new}; empty if nothing does. */
    public String changes(StateSettings now) {
        StringJoiner text = new StringJoiner("; ");
        change(text, "tick_us", tickUs, now.tickUs);
        change(text, "decision_interval_us", decisionIntervalUs, now.decisionIntervalUs);
        change(text, "horizon_us", horizonUs, now.horizonUs);
        change(text, "label_window_us", labelWindowUs, now.labelWindowUs);
        change(text, "loss_wait_us", lossWaitUs, now.lossWaitUs);
        change(text, "class_bounds_permille", classBoundsPermille, now.classBoundsPermille);
        return text.toString();
    }

    private static void change(StringJoiner text, String name, Object was, Object is) {
        if (!was.equals(is)) text.add(name + " = " + was + ", and this job has " + is);
    }

    public void write(DataOutput out) throws IOException {
        out.writeInt(tickUs);
        out.writeInt(decisionIntervalUs);
        out.writeInt(horizonUs);
        out.writeInt(labelWindowUs);
        out.writeInt(lossWaitUs);
        out.writeByte(classBoundsPermille.size());
        for (int bound : classBoundsPermille) out.writeInt(bound);
    }

    /** @param saysWait whether it was written with a loss wait; otherwise it had none */
    public static StateSettings read(DataInput in, boolean saysWait) throws IOException {
        int[] us = new int[4];
        for (int i = 0; i < us.length; i++) us[i] = in.readInt();
        int wait = saysWait ? in.readInt() : AT_REPETITION;
        List<Integer> bounds = new ArrayList<>();
        for (int n = in.readUnsignedByte(); n > 0; n--) bounds.add(in.readInt());
        if (us[1] <= 0) throw new IOException("state with a decision interval of " + us[1] + " us");
        return new StateSettings(us[0], us[1], us[2], us[3], wait, bounds);
    }
}
