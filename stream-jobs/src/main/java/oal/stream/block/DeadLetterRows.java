package oal.stream.block;

import oal.schema.DeadLetterRow;
import oal.schema.StreamTables;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.Refusal;

/** Rows of ClickHouse's {@code dead_letter}. */
public final class DeadLetterRows {
    public final NativeBlockWriter writer = new NativeBlockWriter("dead_letter", StreamTables.DEAD_LETTER);
    private final DeadLetterRow.Ts row = DeadLetterRow.to(writer);

    public void add(DeadLetter letter, Refusal reason) {
        row.ts(letter.kafkaTsMs)
                .topic(letter.topic)
                .key(letter.key)
                .reason(reason.code)
                .detail(letter.detail)
                .kafkaPartition(letter.partition)
                .kafkaOffset(letter.offset)
                .bytes(letter.value.length)
                .payload(letter.value);
    }
}
