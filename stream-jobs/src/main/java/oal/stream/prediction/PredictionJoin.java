package oal.stream.prediction;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.LongToIntFunction;
import oal.stream.item.Item;
import oal.stream.state.StateSettings;

/**
 * Pairs each decision of an access point with the item of the same instant; either may come first. A decision gives one
 * row: with the item, or without it as soon as no item can come (items have passed its instant, its incarnation has
 * ended, or it has waited long enough). An item serves one decision; an item without a decision gives nothing.
 */
public final class PredictionJoin {
    /**
     * Decisions that may wait, 34 minutes: as many as come with the batches that may wait. After an outage of the
     * broker one topic may be read that far ahead of the others. Beyond that the oldest gets no item.
     */
    static final int MAX_WAITING = 20_736;
    /**
     * How long a decision of a silent access point waits, ms of the broker's time: as long as what may wait was made
     * in. When a broker that stood still answers again, its time has gone on by all of that at once, and the batches
     * that complete the items of the last decisions are still to be read.
     */
    public static final long SILENCE_MS = MAX_WAITING * 100L;
    /** Items that may wait for their decision, for the same reason. */
    static final int MAX_KEPT = MAX_WAITING;

    /** Receives each pair; the outcome is null when no item came. */
    public interface Output {
        void prediction(Decision decision, Outcome outcome);
    }

    private final LongToIntFunction bootOrder;
    /** By incarnation and instant. */
    private final List<Decision> waiting = new ArrayList<>();
    private final ArrayDeque<Outcome> kept = new ArrayDeque<>();
    /** Up to where items have come. */
    private boolean began;
    private long passedBoot;
    private long passedUs;
    /** The broker received no waiting decision before this, ms. */
    private long oldestMs = Long.MAX_VALUE;

    /** @param bootOrder larger = later incarnation; negative = forgotten, so earlier than all */
    public PredictionJoin(LongToIntFunction bootOrder) {
        this.bootOrder = bootOrder;
    }

    public void decided(Decision d, Output out) {
        Outcome outcome = removeOutcome(d);
        if (outcome != null || (began && compare(d, passedBoot, passedUs) <= 0)) {
            out.prediction(d, outcome);
            return;
        }
        int i = waiting.size();
        while (i > 0 && compare(waiting.get(i - 1), d.bootId, d.instantUs) > 0) i--;
        waiting.add(i, d);
        oldestMs = Math.min(oldestMs, d.kafkaMs);
        if (waiting.size() > MAX_WAITING) out.prediction(waiting.remove(0), null);
    }

    /**
     * Items have passed {@code instantUs} of this incarnation.
     *
     * @param item that of the instant; null if there is none
     * @param untilMs broker's time, ms, until which its decision may come
     */
    public void passed(long bootId, long instantUs, Item item, long untilMs, Output out) {
        began = true;
        passedBoot = bootId;
        passedUs = instantUs;
        Outcome outcome = item == null ? null : Outcome.of(item, untilMs);
        int done = 0;
        for (; done < waiting.size(); done++) {
            Decision d = waiting.get(done);
            int order = compare(d, bootId, instantUs);
            if (order > 0) break;
            out.prediction(d, order == 0 ? outcome : null);
            if (order == 0) outcome = null;
        }
        waiting.subList(0, done).clear();
        if (waiting.isEmpty()) oldestMs = Long.MAX_VALUE;
        if (outcome == null) return;
        if (kept.size() == MAX_KEPT) kept.removeFirst();
        kept.addLast(outcome);
    }

    /**
     * Everything that the brokers received up to {@code watermarkMs} has been read: decisions that waited longer than
     * {@code timeoutMs} get no item.
     */
    public void expire(long watermarkMs, long timeoutMs, Output out) {
        while (!kept.isEmpty() && kept.peekFirst().untilMs() <= watermarkMs) kept.removeFirst();
        if (waiting.isEmpty() || oldestMs + timeoutMs > watermarkMs) return;
        oldestMs = Long.MAX_VALUE;
        for (Iterator<Decision> i = waiting.iterator(); i.hasNext(); ) {
            Decision d = i.next();
            if (d.kafkaMs + timeoutMs <= watermarkMs) {
                i.remove();
                out.prediction(d, null);
            } else {
                oldestMs = Math.min(oldestMs, d.kafkaMs);
            }
        }
    }

    /** No more items come. */
    public void end(Output out) {
        for (Decision d : waiting) out.prediction(d, null);
        waiting.clear();
        kept.clear();
        oldestMs = Long.MAX_VALUE;
    }

    /**
     * Broker's time, ms, at which {@link #expire} has something to do, or earlier; {@code Long.MAX_VALUE} if nothing
     * waits.
     */
    public long deadlineMs(long timeoutMs) {
        return waiting.isEmpty() ? Long.MAX_VALUE : oldestMs + timeoutMs;
    }

    public int size() {
        return waiting.size() + kept.size();
    }

    private Outcome removeOutcome(Decision d) {
        for (Iterator<Outcome> i = kept.iterator(); i.hasNext(); ) {
            Outcome o = i.next();
            if (o.instantUs() != d.instantUs || o.bootId() != d.bootId) continue;
            i.remove();
            return o;
        }
        return null;
    }

    private int compare(Decision d, long bootId, long instantUs) {
        if (d.bootId == bootId) return Long.compare(d.instantUs, instantUs);
        return Integer.compare(bootOrder.applyAsInt(d.bootId), bootOrder.applyAsInt(bootId));
    }

    public void write(DataOutput out) throws IOException {
        out.writeBoolean(began);
        out.writeLong(passedBoot);
        out.writeLong(passedUs);
        out.writeLong(oldestMs);
        out.writeInt(waiting.size());
        for (Decision d : waiting) d.write(out);
        out.writeInt(kept.size());
        for (Outcome o : kept) o.write(out);
    }

    public void read(DataInput in, StateSettings was) throws IOException {
        began = in.readBoolean();
        passedBoot = in.readLong();
        passedUs = in.readLong();
        oldestMs = in.readLong();
        for (int n = in.readInt(); n > 0; n--) waiting.add(Decision.read(in));
        for (int n = in.readInt(); n > 0; n--) kept.addLast(Outcome.read(in, was.stampsDrops()));
    }
}
