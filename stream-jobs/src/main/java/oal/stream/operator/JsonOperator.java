package oal.stream.operator;

import oal.stream.codec.DeadLetter;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RefusedException;
import org.apache.flink.metrics.Counter;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/** An operator that decodes the records of one JSON topic. Output: dead letters; side output: rows. It has no state. */
public abstract class JsonOperator extends BlockOperator<DeadLetter> implements OneInputStreamOperator<JsonRecord,
        DeadLetter> {
    private static final long serialVersionUID = 1L;

    /** Kafka name. */
    private final String topic;
    private transient DeadLetters deadLetters;
    private transient Counter recordCount;

    protected JsonOperator(PipelineSettings settings, String topic) {
        super(settings);
        this.topic = topic;
    }

    /** Decodes the record and emits its contents, or refuses it as a whole. */
    protected abstract void decode(JsonRecord record) throws RefusedException;

    @Override
    public void open() throws Exception {
        super.open();
        deadLetters = new DeadLetters(blocks, getMetricGroup());
        recordCount = getMetricGroup().counter("records");
    }

    @Override
    public void processElement(StreamRecord<JsonRecord> element) {
        try {
            decode(element.getValue());
            recordCount.inc();
        } catch (RefusedException e) {
            DeadLetter letter = new DeadLetter(topic, element.getValue(), e);
            if (deadLetters.add(letter, e.reason, getProcessingTimeService().getCurrentProcessingTime())) {
                output.collect(new StreamRecord<>(letter, element.getTimestamp()));
            }
        }
        blocks.drainFull(this::emit);
    }
}
