package oal.stream.process;

import oal.schema.LateRow;
import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;
import oal.stream.codec.TopicNames;
import oal.stream.decode.AcceptedBatch;

/** Rows of ClickHouse's {@code late}. */
final class LateRows {
    final NativeBlockWriter writer = new NativeBlockWriter("late", StreamTables.LATE);
    private final LateRow.ApId row = LateRow.to(writer);

    void add(AcceptedBatch b, long lateUs) {
        row.apId(b.apId)
                .site(b.site)
                .ts(b.t0Us)
                .topic(TopicNames.at(b.topic).kafkaName)
                .bootId(b.bootId)
                .seq(b.seq)
                .lateUs(lateUs)
                .rows(b.rows);
    }
}
