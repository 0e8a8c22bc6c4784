package oal.stream.decode;

import oal.schema.StreamTables;
import oal.schema.Topic;
import oal.stream.block.NativeBlockWriter;
import oal.stream.codec.BatchHeader;

/** Rows of ClickHouse's {@code gap}. */
final class GapRows {
    final NativeBlockWriter writer = new NativeBlockWriter("gap", StreamTables.GAP);

    void add(BatchHeader h, Topic topic, GapKind kind, long fromSeq, long toSeq) {
        int c = 0;
        writer.name(c++).add(h.apId);
        writer.name(c++).add(h.site);
        writer.number(c++).add(h.t0Us);
        writer.name(c++).add(topic.kafkaName);
        writer.number(c++).add(kind.code);
        writer.number(c++).add(h.bootId);
        writer.number(c++).add(fromSeq);
        writer.number(c++).add(toSeq);
        writer.number(c).add(toSeq - fromSeq + 1);
    }
}
