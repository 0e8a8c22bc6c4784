package oal.stream.process;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.schema.Topic;
import oal.stream.feature.CompiledProgram;
import oal.stream.feature.Interpreter;
import oal.stream.item.ItemJoin;
import oal.stream.label.Labeler;
import oal.stream.neighbour.Activity;
import oal.stream.prediction.PredictionJoin;
import oal.stream.state.DataText;

/** All that the job remembers about one access point between batches. */
final class ApState {
    /** Topics that labels and features are made of. */
    static final int TOPICS = 2;

    /** Layout of the bytes that {@link #write} gives. */
    private static final int VERSION = 4;
    /** Layout of the version before: it holds no activity of the second under way. */
    private static final int WITHOUT_ACTIVITY = 3;
    /** Layout of the one before that: it holds no decisions either. The oldest that is read. */
    private static final int WITHOUT_DECISIONS = 2;

    final CompiledProgram program;
    final Incarnations boots = new Incarnations();
    final BatchQueue[] queue = {new BatchQueue(boots), new BatchQueue(boots)};
    final Coverage[] coverage = {new Coverage(), new Coverage()};
    final Interpreter features;
    final Labeler labels = new Labeler();
    final ItemJoin items = new ItemJoin();
    final PredictionJoin predictions = new PredictionJoin(boots::order);
    final Activity activity = new Activity();
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

    ApState(CompiledProgram program) {
        this.program = program;
        features = new Interpreter(program);
        if (Topic.SAMPLES.ordinal() >= TOPICS || Topic.PACKETS.ordinal() >= TOPICS) {
            throw new IllegalStateException("samples and packets must be the first two topics");
        }
    }

    int waiting() {
        return queue[0].size() + queue[1].size();
    }

    void write(DataOutput out) throws IOException {
        out.writeByte(VERSION);
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
        items.write(out);
        predictions.write(out);
        activity.write(out);
        out.writeLong(program.shortHash());
        features.write(out);
    }

    /**
     * Reads what {@link #write} wrote, in this version or the two before. State of another feature program cannot be
     * used: features then restart, labels go on.
     */
    static ApState read(DataInput in, CompiledProgram program) throws IOException {
        int version = in.readUnsignedByte();
        if (version < WITHOUT_DECISIONS || version > VERSION) {
            throw new IOException("state of an access point has version " + version + "; this job reads "
                    + WITHOUT_DECISIONS + " to " + VERSION);
        }
        ApState s = new ApState(program);
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
        s.labels.read(in);
        s.items.read(in);
        if (version > WITHOUT_DECISIONS) s.predictions.read(in);
        if (version > WITHOUT_ACTIVITY) s.activity.read(in);
        if (in.readLong() == program.shortHash()) {
            s.features.read(in);
        } else {
            s.items.clear();
            skipRest(in); // features of another program stand last
        }
        return s;
    }

    private static void skipRest(DataInput in) throws IOException {
        int all = Integer.MAX_VALUE; // the state of one access point is a byte array, so it is never longer
        in.skipBytes(all);
    }
}
