package oal.stream.decode;

import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;
import oal.stream.codec.BatchHeader;
import oal.stream.codec.RawBatch;

/** Rows of ClickHouse's {@code batch}. */
final class BatchRows {
    final NativeBlockWriter writer = new NativeBlockWriter("batch", StreamTables.BATCH);

    void add(BatchHeader h, RawBatch batch, int rows) {
        int c = 0;
        writer.name(c++).add(h.apId);
        writer.name(c++).add(h.site);
        writer.number(c++).add(h.t0Us);
        writer.name(c++).add(batch.topic().kafkaName);
        writer.number(c++).add(h.bootId);
        writer.number(c++).add(h.seq);
        writer.number(c++).add(h.ticks);
        writer.number(c++).add(h.ticksMissed);
        writer.number(c++).add(h.tickLateMaxUs);
        writer.number(c++).add(h.ringDrops);
        writer.number(c++).add(h.rowsDropped);
        writer.number(c++).add(h.dumpsInterrupted);
        writer.number(c++).add(Math.min(h.clockState, 255));
        writer.number(c++).add(h.clockErrorUs);
        writer.number(c++).add(rows);
        writer.number(c++).add(batch.value.length);
        writer.number(c++).add(batch.kafkaTsMs);
        writer.number(c++).add(batch.partition);
        writer.number(c).add(batch.offset);
    }
}
