package oal.stream.decode;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import oal.schema.TableSpec;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.access.AccessChange;
import oal.stream.access.AccessHistory;
import oal.stream.access.BatchMac;
import oal.stream.access.Revocations;
import oal.stream.block.RawRows;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.BatchHeader;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.RawBatch;
import oal.stream.codec.Refusal;
import oal.stream.codec.RefusedException;
import oal.stream.codec.TableRows;
import oal.stream.operator.DeadLetters;
import oal.stream.operator.KeyedBlockOperator;
import oal.stream.operator.PipelineSettings;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.metrics.Counter;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.util.OutputTag;

/**
 * Turns records into rows. Refuses what the contract refuses, what was not made by the access point that it names, and
 * what a revoked one sent. Drops duplicates and reports gaps. The remaining batches go to the raw tables and on to
 * labels, features and predictions (batches of events only if they hold decisions). Keyed by the record's key; every
 * task gets every change of access.
 */
public final class DecodeOperator extends KeyedBlockOperator<AcceptedBatch> implements TwoInputStreamOperator<RawBatch,
        AccessChange, AcceptedBatch> {
    private static final long serialVersionUID = 1L;
    /** Events that the access point's items need: what was predicted, and what was done. */
    private static final List<TableSpec> OF_POLICIES = List.of(Tables.DECISION, Tables.ACTION, Tables.REWRITE,
            Tables.CONTROL);

    public static final OutputTag<DeadLetter> DEAD_LETTERS = new OutputTag<>("dead-letters") {};

    private final AccessHistory accessBefore;
    private transient ValueState<Arrivals> state;
    private transient Revocations revocations;
    /** Null: nothing is checked. */
    private transient BatchMac macs;
    private transient BatchDecoder decoder;
    private transient RawRows[] raw;
    private transient BatchRows batches;
    private transient GapRows gaps;
    private transient DeadLetters deadLetters;
    private transient Counter batchCount;
    private transient Counter rowCount;
    /** Records that this operator refuses though the contract does not. */
    private transient Map<Refusal, Counter> accessCounts;
    private transient Counter duplicateCount;
    private transient Counter gapCount;
    private transient StreamRecord<AcceptedBatch> accepted;

    public DecodeOperator(PipelineSettings settings, AccessHistory accessBefore) {
        super(settings);
        this.accessBefore = accessBefore;
    }

    @Override
    public void open() throws Exception {
        super.open();
        state = getRuntimeContext().getState(new ValueStateDescriptor<>("arrivals", new ArrivalsSerializer()));
        decoder = BatchDecoder.all();
        batches = new BatchRows();
        gaps = new GapRows();
        deadLetters = new DeadLetters(blocks, getMetricGroup());
        blocks.add(batches.writer);
        blocks.add(gaps.writer);
        raw = new RawRows[settings.rawRows() ? Tables.ALL.size() : 0];
        for (TableSpec t : Tables.ALL) {
            if (!settings.rawRows()) continue;
            raw[t.id()] = new RawRows(t);
            blocks.add(raw[t.id()].writer);
        }
        accepted = new StreamRecord<>(null);
        batchCount = getMetricGroup().counter("batches");
        rowCount = getMetricGroup().counter("rows");
        duplicateCount = getMetricGroup().counter("duplicates");
        gapCount = getMetricGroup().counter("gaps");
        accessCounts = Map.of(Refusal.UNSIGNED, getMetricGroup().counter("unsigned"), Refusal.UNKNOWN_KEY,
                getMetricGroup().counter("unknownKey"),
                Refusal.FORGED, getMetricGroup().counter("forged"), Refusal.REVOKED, getMetricGroup()
                        .counter("revoked"));
        Counter keysRefused = getMetricGroup().counter("macKeysRefused");
        if (!settings.macKeysFile().isEmpty()) {
            macs = new BatchMac(Path.of(settings.macKeysFile()), nowMs(), keysRefused);
        }
        getMetricGroup().gauge("macKeys", () -> macs == null ? 0 : macs.masters());
        revocations = accessBefore.read();
        getMetricGroup().gauge("revokedAps", () -> revocations.size());
    }

    private long nowMs() {
        return getProcessingTimeService().getCurrentProcessingTime();
    }

    @Override
    public void processElement2(StreamRecord<AccessChange> element) {
        revocations.apply(element.getValue());
    }

    /** Only batches advance time: changes of access, of which there may be none for months, hold nothing back. */
    @Override
    public void processWatermark1(Watermark mark) throws Exception {
        processWatermark(mark);
    }

    @Override
    public void processWatermark2(Watermark mark) {}

    @Override
    protected void processWatermarkStatus(WatermarkStatus status, int input) throws Exception {
        if (input == 0) processWatermarkStatus(status);
    }

    @Override
    public void processElement1(StreamRecord<RawBatch> element) throws Exception {
        RawBatch batch = element.getValue();
        Topic topic = batch.topic();
        try {
            decoder.decode(topic, batch.value);
            decoder.check(batch.key, batch.kafkaTsMs * 1000);
            checkAccess(batch);
        } catch (RefusedException e) {
            count(e.reason);
            DeadLetter letter = new DeadLetter(batch, e);
            if (deadLetters.add(letter, e.reason, nowMs())) {
                output.collect(DEAD_LETTERS, new StreamRecord<>(letter, element.getTimestamp()));
            }
            blocks.drainFull(this::emit);
            return;
        }
        if (isNew(batch, topic)) {
            int rows = decoder.rows();
            batchCount.inc();
            rowCount.inc(rows);
            batches.add(decoder.header(), batch, rows);
            if (settings.rawRows()) for (TableRows t : decoder.tables(topic)) raw[t.spec.id()].add(decoder);
            if (topic != Topic.EVENTS || tellsOfPolicies()) {
                output.collect(accepted.replace(new AcceptedBatch(batch, decoder.header(), rows),
                        element.getTimestamp()));
            }
        } else {
            duplicateCount.inc();
        }
        blocks.drainFull(this::emit);
    }

    /** Are there rows that are paired with items, or that mark them? */
    private boolean tellsOfPolicies() {
        for (TableSpec t : OF_POLICIES) if (decoder.table(t.id()).rows > 0) return true;
        return false;
    }

    /**
     * Refuses a batch that its access point did not make or may not send. This comes before anything of the batch is
     * used, so that a forged batch changes nothing of its victim's state.
     */
    private void checkAccess(RawBatch batch) throws RefusedException {
        BatchHeader h = decoder.header();
        if (macs != null) macs.check(batch, h.apId, h.site, nowMs());
        long sinceUs = revocations.sinceUs(h.apId);
        if (batch.kafkaTsMs * 1000 >= sinceUs) {
            throw new RefusedException(Refusal.REVOKED, "ap_id '" + h.apId + "', partition " + batch.partition
                    + ", offset " + batch.offset + ": revoked at " + sinceUs + " µs");
        }
    }

    private void count(Refusal reason) {
        Counter own = accessCounts.get(reason);
        if (own != null) own.inc();
    }

    /** Note the batch's arrival in the state of its AP. False: it is a duplicate. */
    private boolean isNew(RawBatch batch, Topic topic) throws Exception {
        BatchHeader h = decoder.header();
        Arrivals arrivals = state.value();
        if (arrivals == null) arrivals = new Arrivals();
        boolean fresh = arrivals.note(batch.topic, h.bootId, h.seq, (kind, from, to) -> {
            gapCount.inc();
            gaps.add(h, topic, kind, from, to);
        });
        arrivals.lastMs = Math.max(arrivals.lastMs, batch.kafkaTsMs);
        if (arrivals.timerMs == Long.MIN_VALUE) {
            arrivals.timerMs = arrivals.lastMs + settings.stateTtl().toMillis();
            wakeAt(arrivals.timerMs);
        }
        state.update(arrivals);
        return fresh;
    }

    @Override
    public void onEventTime(InternalTimer<String, VoidNamespace> timer) throws Exception {
        Arrivals arrivals = state.value();
        if (arrivals == null) return;
        long end = arrivals.lastMs + settings.stateTtl().toMillis();
        if (end <= timer.getTimestamp()) {
            state.clear();
        } else {
            arrivals.timerMs = end;
            wakeAt(end);
            state.update(arrivals);
        }
    }

    @Override
    public void onProcessingTime(InternalTimer<String, VoidNamespace> timer) {
        throw new IllegalStateException("no processing-time timer is ever set");
    }
}
