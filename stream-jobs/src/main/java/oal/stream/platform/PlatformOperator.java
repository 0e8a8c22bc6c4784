package oal.stream.platform;

import oal.stream.codec.InputTopics;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RefusedException;
import oal.stream.operator.JsonOperator;
import oal.stream.operator.PipelineSettings;
import org.apache.flink.metrics.Counter;

/** Records of the platform's services to rows of their tables. */
public final class PlatformOperator extends JsonOperator {
    private static final long serialVersionUID = 1L;

    private transient PlatformDecoder decoder;
    private transient Counter rowCount;

    public PlatformOperator(PipelineSettings settings) {
        super(settings, InputTopics.PLATFORM_EVENTS);
    }

    @Override
    public void open() throws Exception {
        super.open();
        decoder = new PlatformDecoder();
        for (PlatformTable table : decoder.tables()) blocks.add(table.writer);
        rowCount = getMetricGroup().counter("rows");
    }

    @Override
    protected void decode(JsonRecord record) throws RefusedException {
        rowCount.inc(decoder.decode(record));
    }
}
