package oal.stream.decode;

import oal.schema.BatchRow;
import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;
import oal.stream.codec.BatchHeader;
import oal.stream.codec.RawBatch;

/** Rows of ClickHouse's {@code batch}. */
final class BatchRows {
    final NativeBlockWriter writer = new NativeBlockWriter("batch", StreamTables.BATCH);
    private final BatchRow.ApId row = BatchRow.to(writer);

    void add(BatchHeader h, RawBatch batch, int rows) {
        row.apId(h.apId)
                .site(h.site)
                .ts(h.t0Us)
                .topic(batch.topic().kafkaName)
                .bootId(h.bootId)
                .seq(h.seq)
                .ticks(h.ticks)
                .ticksMissed(h.ticksMissed)
                .tickLateMaxUs(h.tickLateMaxUs)
                .ringDrops(h.ringDrops)
                .rowsDropped(h.rowsDropped)
                .dumpsInterrupted(h.dumpsInterrupted)
                .clockState(Math.min(h.clockState, 255))
                .clockErrorUs(h.clockErrorUs)
                .rows(rows)
                .bytes(batch.value.length)
                .kafkaTs(batch.kafkaTsMs)
                .kafkaPartition(batch.partition)
                .kafkaOffset(batch.offset);
    }
}
