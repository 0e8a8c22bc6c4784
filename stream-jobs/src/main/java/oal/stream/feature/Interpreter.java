package oal.stream.feature;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;
import java.util.BitSet;
import java.util.function.LongConsumer;
import oal.schema.Settings;
import oal.schema.TableSpec;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchDecoder;

/**
 * Runs a feature program over the batches of one access point, bit for bit as schema/README.md says and as C does at
 * the AP. Feed batches that share one {@code t0_us} together, in order of it: {@link #begin}, then {@link #add} for
 * each, then {@link #end}. {@code evaluated} is called at each decision instant that is complete.
 */
public final class Interpreter {
    /**
     * Rows further than this after their batch's start are not read: one wrong row must not cost millions of
     * evaluations.
     */
    public static final long MAX_AHEAD_US = 10_000_000;

    /** Clamp of an entity's value, so that no group's sum depends on the order of entities. */
    private static final long ENTITY_LIMIT = 1L << 53;
    private static final long NEVER = Long.MIN_VALUE;
    /** First byte of the state. 1: written before holes were remembered, so any hole may be in it. */
    private static final int NOT_STARTED = 0;
    private static final int NO_HOLES = 2;
    private static final int HOLES = 3;
    private static final LongConsumer NOBODY = instant -> { };
    private static final Topic[] TOPICS = Topic.values();

    private final CompiledProgram program;
    private final EntityTable[] tables = new EntityTable[Tables.ALL.size()];
    private final long[] x;
    /** Of features that choose an entity: the group's value at the present instant, not clamped. */
    private final long[] extreme;
    private final long[] ewma;
    private final boolean[] ewmaSet;
    /** Of lags and changes: the operand's results, at instant {@code turn} modulo the lag. */
    private final long[][] lag;
    private final boolean[] topicOpen = new boolean[TOPICS.length];
    private boolean started;
    private long bootId;
    /** Instant to be evaluated next, µs. */
    private long next;
    /** Instants evaluated since the last restart. */
    private long turn;
    private long firstUs;
    private final Input input;
    private final HoleMemory holes;
    private final boolean[] came = new boolean[TOPICS.length];
    private final BitSet[] heard = new BitSet[Tables.ALL.size()];
    /** Working memory of the current group of batches. */
    private transient Workspace work;

    /** Of input that has no holes. */
    public Interpreter(CompiledProgram program) {
        this(program, Input.WHOLE);
    }

    public Interpreter(CompiledProgram program, Input input) {
        this.program = program;
        this.input = input;
        holes = new HoleMemory(program);
        for (TableSpec t : Tables.ALL) {
            if (program.byTable[t.id()].length == 0) continue;
            tables[t.id()] = new EntityTable(t, program.cellWords[t.id()], program.choosers[t.id()]);
        }
        x = new long[program.size()];
        extreme = new long[program.size()];
        ewma = new long[program.size()];
        ewmaSet = new boolean[program.size()];
        lag = new long[program.size()][];
        for (Feature f : program.features) if (f.op.late()) lag[f.index] = new long[f.window];
    }

    /** Would a batch of this incarnation and time make all state restart? */
    public boolean restarts(long boot, long t0Us) {
        if (!started || boot != bootId) return true;
        long last = next - program.intervalUs;
        return t0Us > last + Settings.FEATURE_GAP_US || t0Us < last - Settings.FEATURE_GAP_US;
    }

    /** A group of batches with this {@code t0_us} begins. Returns whether all state restarted. */
    public boolean begin(Workspace scratch, long boot, long t0Us, LongConsumer evaluated) {
        boolean restart = restarts(boot, t0Us);
        if (restart) {
            restart(boot, (t0Us + program.intervalUs - 1) / program.intervalUs * program.intervalUs);
        }
        while (next < t0Us) evaluate(evaluated);
        work = scratch;
        Arrays.fill(work.open, false);
        return restart;
    }

    /**
     * As {@link #begin}, for one that goes with another: {@code leader}, whose group has begun, says at which instant
     * it is, and {@link #at} is called for each of its instants. If this one is at another, all its state restarts.
     */
    public void follow(Workspace scratch, Interpreter leader) {
        if (!started || bootId != leader.bootId || next != leader.next) restart(leader.bootId, leader.next);
        work = scratch;
        Arrays.fill(work.open, false);
    }

    /**
     * Evaluate this instant of the leader's, within a group with the rows up to it. False: this one is at another.
     */
    public boolean at(long instant) {
        if (!started || next != instant) return false;
        if (work != null) feedUntil(next);
        evaluate(NOBODY);
        return true;
    }

    /**
     * One batch of the group. Its rows are read at {@link #end}, so each topic of a group needs a decoder of its own.
     */
    public void add(Topic topic, BatchDecoder batch) {
        if (work == null) throw new IllegalStateException("begin() comes first");
        int t = topic.ordinal();
        boolean sweep = topicOpen[t];
        topicOpen[t] = true;
        holes.batch(topic);
        for (EntityTable table : tables) {
            if (table == null || table.spec.topic() != topic) continue;
            if (sweep) table.sweep();
            work.cursors[table.spec.id()].open(table, batch, batch.header().t0Us + MAX_AHEAD_US);
            work.open[table.spec.id()] = true;
        }
    }

    /** Time of the group's latest row that this program reads, µs; the smallest number if it reads none. */
    public long lastUs() {
        long lastUs = NEVER;
        for (int i = 0; i < tables.length; i++) if (work.open[i]) lastUs = Math.max(lastUs, work.cursors[i].lastUs);
        return lastUs;
    }

    /** All batches of the group were added: take their rows and evaluate the instants that they complete. */
    public void end(LongConsumer evaluated) {
        end(lastUs(), evaluated);
    }

    /** The same up to {@code lastUs}, the time of the latest row that anyone reads who goes with this one. */
    public void end(long lastUs, LongConsumer evaluated) {
        while (next < lastUs) {
            feedUntil(next);
            evaluate(evaluated);
        }
        finish();
    }

    /** The group's rows that no instant has taken yet are taken; for one that follows. */
    public void finish() {
        feedUntil(Long.MAX_VALUE);
        work = null;
    }

    private void feedUntil(long instant) {
        for (int i = 0; i < tables.length; i++) if (work.open[i]) work.cursors[i].feedUntil(instant);
    }

    private void restart(long boot, long firstInstant) {
        started = true;
        bootId = boot;
        next = firstUs = firstInstant;
        turn = 0;
        for (EntityTable t : tables) if (t != null) t.clear();
        Arrays.fill(ewmaSet, false);
        Arrays.fill(topicOpen, false);
        holes.restart();
    }

    /** Features of the instant evaluated last, in the program's order; valid until the next evaluation. */
    public long[] features() {
        return x;
    }

    /** Instant to be evaluated next, µs. */
    public long next() {
        return next;
    }

    /** First instant since the last restart, µs. */
    public long firstInstant() {
        return firstUs;
    }

    /** Entities with state. */
    public int entities() {
        int n = 0;
        for (EntityTable t : tables) if (t != null) n += t.entities.size();
        return n;
    }

    private void evaluate(LongConsumer evaluated) {
        long instant = next;
        next += program.intervalUs;
        for (Feature f : program.features) {
            boolean missing;
            long value = 0;
            if (f.op.derived()) {
                missing = !derive(f);
                value = derived;
            } else {
                missing = !fold(f, instant);
                value = derived;
            }
            x[f.index] = missing ? f.missing : Math.min(Math.max(value, f.lo), f.hi);
        }
        for (int i = 0; i < lag.length; i++) {
            if (lag[i] != null) lag[i][(int) (turn % lag[i].length)] = x[(int) program.features[i].a];
        }
        remember(instant);
        turn++;
        evaluated.accept(instant);
    }

    private void remember(long instant) {
        long fromUs = instant - program.intervalUs;
        boolean began = turn == 0;
        for (Topic topic : TOPICS) {
            if (!program.reads[topic.ordinal()]) continue;
            came[topic.ordinal()] = input.came(topic, fromUs, instant);
            began &= input.began(topic, fromUs);
        }
        if (began) holes.begin();
        for (int i = 0; i < tables.length; i++) if (tables[i] != null) heard[i] = tables[i].heard();
        holes.evaluated(came, x, ewma, heard);
    }

    /**
     * May the vector of the instant evaluated last differ from that of the access point, because batches that went into
     * that one did not come?
     */
    public boolean lacksInput() {
        return holes.lacks();
    }

    /** Result of {@link #fold} and {@link #derive}. */
    private long derived;

    /** Close the bucket at each entity and take the group. False if there is no value. */
    private boolean fold(Feature f, long instant) {
        long total = 0;
        long n = 0;
        for (Entity e : tables[f.table].entities) {
            if (e.cells[f.cell] == 0) continue;
            long v = Cells.close(f, e.cells, instant, turn, program.intervalUs);
            v = Saturating.divide(Saturating.multiply(v, f.a), f.b);
            v = Math.min(Math.max(v, -ENTITY_LIMIT), ENTITY_LIMIT);
            if (f.chooses) e.kept[f.kept] = v;
            if (f.chooser != null && !chose(f.chooser, e)) continue;
            total = switch (f.group) {
                case Feature.SUM, Feature.MEAN, Feature.TOTAL -> Saturating.add(total, v);
                case Feature.COUNT -> v > 0 ? total + 1 : total;
                case Feature.MIN -> n == 0 ? v : Math.min(total, v);
                default -> n == 0 ? v : Math.max(total, v);
            };
            n++;
        }
        extreme[f.index] = total;
        derived = f.group == Feature.MEAN && n > 0 ? Saturating.divide(total, n) : total;
        return n > 0 || f.group == Feature.SUM;
    }

    /** Has the entity the value that this feature's group has at the present instant? */
    private boolean chose(Feature by, Entity e) {
        return e.cells[by.cell] != 0 && e.kept[by.kept] == extreme[by.index];
    }

    /** From results of this instant. False if an operand is missing. */
    private boolean derive(Feature f) {
        long a = f.op.late() ? lagged(f) : x[(int) f.a];
        if (a == Feature.MISSING) return false;
        switch (f.op) {
            case RATIO -> {
                long b = x[(int) f.b];
                if (b == Feature.MISSING || b == 0) return false;
                derived = Saturating.divide(Saturating.multiply(a, f.parameter), b);
            }
            case EWMA -> {
                long scaled = Saturating.multiply(a, 256);
                int i = f.index;
                ewma[i] = ewmaSet[i] ? Saturating.approach(ewma[i], scaled, f.window) : scaled;
                ewmaSet[i] = true;
                derived = Saturating.divide(ewma[i], 256);
            }
            case LAG -> derived = a;
            case CHANGE -> {
                long now = x[(int) f.a];
                if (now == Feature.MISSING) return false;
                derived = Saturating.subtract(now, a);
            }
            case DIFF, ADD -> {
                long b = x[(int) f.b];
                if (b == Feature.MISSING) return false;
                derived = f.op == FeatureOp.DIFF ? Saturating.subtract(a, b) : Saturating.add(a, b);
            }
            case LAST, DELTA, RATE, MAX, MIN, MEAN, SUM, COUNT -> throw new IllegalStateException("feature " + f.index
                    + " is not derived");
        }
        return true;
    }

    private long lagged(Feature f) {
        return turn < f.window ? Feature.MISSING : lag[f.index][(int) (turn % f.window)];
    }

    public void write(DataOutput out) throws IOException {
        out.writeByte(!started ? NOT_STARTED : holes.active() ? HOLES : NO_HOLES);
        if (!started) return;
        out.writeLong(bootId);
        out.writeLong(next);
        out.writeLong(turn);
        out.writeLong(firstUs);
        for (boolean o : topicOpen) out.writeBoolean(o);
        for (int i = 0; i < x.length; i++) {
            out.writeBoolean(ewmaSet[i]);
            if (ewmaSet[i]) out.writeLong(ewma[i]);
        }
        for (long[] ring : lag) if (ring != null) for (long v : ring) out.writeLong(v);
        for (EntityTable t : tables) if (t != null) t.write(out);
        if (holes.active()) holes.write(out);
    }

    public void read(DataInput in) throws IOException {
        int kind = in.readUnsignedByte();
        if (kind > HOLES) throw new IOException("state of features of kind " + kind);
        started = kind != NOT_STARTED;
        if (!started) return;
        bootId = in.readLong();
        next = in.readLong();
        turn = in.readLong();
        firstUs = in.readLong();
        for (int i = 0; i < topicOpen.length; i++) topicOpen[i] = in.readBoolean();
        for (int i = 0; i < x.length; i++) {
            ewmaSet[i] = in.readBoolean();
            ewma[i] = ewmaSet[i] ? in.readLong() : 0;
        }
        for (long[] ring : lag) if (ring != null) for (int i = 0; i < ring.length; i++) ring[i] = in.readLong();
        for (EntityTable t : tables) if (t != null) t.read(in);
        holes.restart();
        if (kind == NO_HOLES) holes.begin();
        else if (kind == HOLES) holes.read(in);
    }
}
