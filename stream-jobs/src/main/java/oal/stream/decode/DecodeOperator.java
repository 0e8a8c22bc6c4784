package oal.stream.decode;

import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.metrics.Counter;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;
import oal.schema.TableSpec;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.block.DeadLetterRows;
import oal.stream.block.RawRows;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.BatchHeader;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.RawBatch;
import oal.stream.codec.RefusedException;
import oal.stream.codec.TableRows;
import oal.stream.pipeline.PipelineSettings;
import oal.stream.process.AcceptedBatch;
import oal.stream.state.KeyedBlockOperator;

/**
 * Records to rows. Refuses what the contract refuses, drops what came before, tells of gaps; what is left goes to the raw tables and, of
 * events only those with decisions, on to labels, features and predictions. Keyed by the record's key.
 */
public final class DecodeOperator extends KeyedBlockOperator<RawBatch, AcceptedBatch> {
    private static final long serialVersionUID = 1L;

    public static final OutputTag<DeadLetter> DEAD_LETTERS = new OutputTag<>("dead-letters") {};

    private transient ValueState<Arrivals> state;
    private transient BatchDecoder decoder;
    private transient RawRows[] raw;
    private transient BatchRows batches;
    private transient GapRows gaps;
    private transient DeadLetterRows deadLetters;
    private transient Counter batchCount;
    private transient Counter rowCount;
    private transient Counter refusedCount;
    private transient Counter duplicateCount;
    private transient Counter gapCount;
    private transient StreamRecord<AcceptedBatch> accepted;

    public DecodeOperator(PipelineSettings settings) {
        super(settings);
    }

    @Override
    public void open() throws Exception {
        super.open();
        state = getRuntimeContext().getState(new ValueStateDescriptor<>("arrivals", new ArrivalsSerializer()));
        decoder = BatchDecoder.all();
        batches = new BatchRows();
        gaps = new GapRows();
        deadLetters = new DeadLetterRows();
        blocks.add(batches.writer);
        blocks.add(gaps.writer);
        blocks.add(deadLetters.writer);
        raw = new RawRows[settings.rawRows() ? Tables.ALL.size() : 0];
        for (TableSpec t : Tables.ALL) {
            if (!settings.rawRows()) continue;
            raw[t.id()] = new RawRows(t);
            blocks.add(raw[t.id()].writer);
        }
        accepted = new StreamRecord<>(null);
        batchCount = getMetricGroup().counter("batches");
        rowCount = getMetricGroup().counter("rows");
        refusedCount = getMetricGroup().counter("refused");
        duplicateCount = getMetricGroup().counter("duplicates");
        gapCount = getMetricGroup().counter("gaps");
    }

    @Override
    public void processElement(StreamRecord<RawBatch> element) throws Exception {
        RawBatch batch = element.getValue();
        Topic topic = batch.topic();
        try {
            decoder.decode(topic, batch.value);
            decoder.check(batch.key, batch.kafkaTsMs * 1000);
        } catch (RefusedException e) {
            refusedCount.inc();
            DeadLetter letter = new DeadLetter(batch, e);
            deadLetters.add(letter, e.reason);
            output.collect(DEAD_LETTERS, new StreamRecord<>(letter, element.getTimestamp()));
            blocks.takeFull(this::emit);
            return;
        }
        if (take(batch, topic)) {
            int rows = decoder.rows();
            batchCount.inc();
            rowCount.inc(rows);
            batches.add(decoder.header(), batch, rows);
            if (settings.rawRows()) for (TableRows t : decoder.tables(topic)) raw[t.spec.id()].add(decoder);
            if (topic != Topic.EVENTS || decoder.table(Tables.DECISION.id()).rows > 0) {
                output.collect(accepted.replace(new AcceptedBatch(batch, decoder.header(), rows), element.getTimestamp()));
            }
        } else {
            duplicateCount.inc();
        }
        blocks.takeFull(this::emit);
    }

    /** Note the batch's arrival in the AP's state. False: it is a duplicate. */
    private boolean take(RawBatch batch, Topic topic) throws Exception {
        BatchHeader h = decoder.header();
        Arrivals arrivals = state.value();
        if (arrivals == null) arrivals = new Arrivals();
        boolean fresh = arrivals.take(batch.topic, h.bootId, h.seq, (kind, from, to) -> {
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
