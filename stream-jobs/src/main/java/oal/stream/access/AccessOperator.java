package oal.stream.access;

import oal.stream.codec.InputTopics;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RefusedException;
import oal.stream.operator.JsonOperator;
import oal.stream.operator.PipelineSettings;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.OutputTag;

/** Records of {@code ap.access.v1} to changes, on the side. */
public final class AccessOperator extends JsonOperator {
    private static final long serialVersionUID = 1L;

    public static final OutputTag<AccessChange> CHANGES = new OutputTag<>("access-changes") {};

    public AccessOperator(PipelineSettings settings) {
        super(settings, InputTopics.ACCESS);
    }

    @Override
    protected void decode(JsonRecord record) throws RefusedException {
        output.collect(CHANGES, new StreamRecord<>(AccessDecoder.decode(record)));
    }
}
