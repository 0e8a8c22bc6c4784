package oal.stream.platform;

import org.apache.flink.metrics.Counter;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import oal.stream.block.DeadLetterRows;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.RefusedException;
import oal.stream.pipeline.PipelineSettings;
import oal.stream.source.InputTopics;
import oal.stream.state.BlockOperator;

/** Records of the platform's services to rows of their tables. Gives dead letters; rows on the side. Keeps no state. */
public final class PlatformOperator extends BlockOperator<DeadLetter> implements OneInputStreamOperator<PlatformRecord, DeadLetter> {
    private static final long serialVersionUID = 1L;

    private transient PlatformDecoder decoder;
    private transient DeadLetterRows deadLetters;
    private transient Counter recordCount;
    private transient Counter rowCount;
    private transient Counter refusedCount;

    public PlatformOperator(PipelineSettings settings) {
        super(settings);
    }

    @Override
    public void open() throws Exception {
        super.open();
        decoder = new PlatformDecoder();
        deadLetters = new DeadLetterRows();
        for (PlatformTable table : decoder.tables()) blocks.add(table.writer);
        blocks.add(deadLetters.writer);
        recordCount = getMetricGroup().counter("records");
        rowCount = getMetricGroup().counter("rows");
        refusedCount = getMetricGroup().counter("refused");
    }

    @Override
    public void processElement(StreamRecord<PlatformRecord> element) {
        PlatformRecord r = element.getValue();
        try {
            rowCount.inc(decoder.decode(r.value, r.kafkaTsMs));
            recordCount.inc();
        } catch (RefusedException e) {
            refusedCount.inc();
            DeadLetter letter = new DeadLetter(InputTopics.PLATFORM_EVENTS, r.key, r.value, r.kafkaTsMs, r.partition, r.offset, e);
            deadLetters.add(letter, e.reason);
            output.collect(new StreamRecord<>(letter, element.getTimestamp()));
        }
        blocks.takeFull(this::emit);
    }
}
