package oal.stream.operator;

import java.util.List;
import java.util.Queue;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.apache.flink.util.OutputTag;

/** What an operator under test has given on the side. */
public final class SideOutput {
    private SideOutput() {}

    /** Since it was opened; empty: nothing. */
    public static <T> List<T> of(AbstractStreamOperatorTestHarness<?> harness, OutputTag<T> tag) {
        Queue<StreamRecord<T>> out = harness.getSideOutput(tag);
        return out == null ? List.of() : out.stream().map(StreamRecord::getValue).toList();
    }
}
