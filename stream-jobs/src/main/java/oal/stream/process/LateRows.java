package oal.stream.process;

import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;
import oal.stream.codec.TopicNames;
import oal.stream.decode.AcceptedBatch;

/** Rows of ClickHouse's {@code late}. */
final class LateRows {
    final NativeBlockWriter writer = new NativeBlockWriter("late", StreamTables.LATE);

    void add(AcceptedBatch b, long lateUs) {
        int c = 0;
        writer.name(c++).add(b.apId);
        writer.name(c++).add(b.site);
        writer.number(c++).add(b.t0Us);
        writer.name(c++).add(TopicNames.at(b.topic).kafkaName);
        writer.number(c++).add(b.bootId);
        writer.number(c++).add(b.seq);
        writer.number(c++).add(lateUs);
        writer.number(c).add(b.rows);
    }
}
