package oal.stream.decode;

import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;
import oal.stream.codec.RawBatch;
import oal.stream.codec.RefusedException;

/** Rows of ClickHouse's {@code dead_letter}. */
final class DeadLetterRows {
    final NativeBlockWriter writer = new NativeBlockWriter("dead_letter", StreamTables.DEAD_LETTER);

    void add(RawBatch batch, RefusedException why) {
        int c = 0;
        writer.number(c++).add(batch.kafkaTsMs);
        writer.name(c++).add(batch.topic().kafkaName);
        writer.string(c++).add(batch.key);
        writer.number(c++).add(why.reason.code);
        writer.string(c++).add(why.getMessage());
        writer.number(c++).add(batch.partition);
        writer.number(c++).add(batch.offset);
        writer.number(c++).add(batch.value.length);
        writer.string(c).add(batch.value);
    }
}
