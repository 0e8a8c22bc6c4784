package oal.stream.decode;

import oal.schema.GapRow;
import oal.schema.StreamTables;
import oal.schema.Topic;
import oal.stream.block.NativeBlockWriter;
import oal.stream.codec.BatchHeader;

/** Rows of ClickHouse's {@code gap}. */
final class GapRows {
    final NativeBlockWriter writer = new NativeBlockWriter("gap", StreamTables.GAP);
    private final GapRow.ApId row = GapRow.to(writer);

    void add(BatchHeader h, Topic topic, GapKind kind, long fromSeq, long toSeq) {
        row.apId(h.apId)
                .site(h.site)
                .ts(h.t0Us)
                .topic(topic.kafkaName)
                .kind(kind.code)
                .bootId(h.bootId)
                .fromSeq(fromSeq)
                .toSeq(toSeq)
                .batches(toSeq - fromSeq + 1);
    }
}
