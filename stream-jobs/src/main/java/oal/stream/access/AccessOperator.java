package oal.stream.access;

import org.apache.flink.metrics.Counter;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;
import oal.stream.block.DeadLetterRows;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.RefusedException;
import oal.stream.pipeline.PipelineSettings;
import oal.stream.source.InputTopics;
import oal.stream.state.BlockOperator;

/** Records of {@code ap.access.v1} to changes. Gives dead letters; changes and rows on the side. Keeps no state. */
public final class AccessOperator extends BlockOperator<DeadLetter> implements OneInputStreamOperator<AccessRecord, DeadLetter> {
    private static final long serialVersionUID = 1L;

    public static final OutputTag<AccessChange> CHANGES = new OutputTag<>("access-changes") {};

    private transient DeadLetterRows deadLetters;
    private transient Counter recordCount;
    private transient Counter refusedCount;

    public AccessOperator(PipelineSettings settings) {
        super(settings);
    }

    @Override
    public void open() throws Exception {
        super.open();
        deadLetters = new DeadLetterRows();
        blocks.add(deadLetters.writer);
        recordCount = getMetricGroup().counter("records");
        refusedCount = getMetricGroup().counter("refused");
    }

    @Override
    public void processElement(StreamRecord<AccessRecord> element) {
        AccessRecord r = element.getValue();
        try {
            output.collect(CHANGES, new StreamRecord<>(AccessDecoder.decode(r)));
            recordCount.inc();
        } catch (RefusedException e) {
            refusedCount.inc();
            DeadLetter letter = new DeadLetter(InputTopics.ACCESS, r.key, r.value == null ? new byte[0] : r.value, r.kafkaTsMs, r.partition, r.offset, e);
            deadLetters.add(letter, e.reason);
            output.collect(new StreamRecord<>(letter));
        }
        blocks.takeFull(this::emit);
    }
}
