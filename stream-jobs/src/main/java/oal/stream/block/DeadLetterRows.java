package oal.stream.block;

import oal.schema.StreamTables;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.Refusal;

/** Rows of ClickHouse's {@code dead_letter}. */
public final class DeadLetterRows {
    public final NativeBlockWriter writer = new NativeBlockWriter("dead_letter", StreamTables.DEAD_LETTER);

    public void add(DeadLetter letter, Refusal reason) {
        int c = 0;
        writer.number(c++).add(letter.kafkaTsMs);
        writer.name(c++).add(letter.topic);
        writer.string(c++).add(letter.key);
        writer.number(c++).add(reason.code);
        writer.string(c++).add(letter.detail);
        writer.number(c++).add(letter.partition);
        writer.number(c++).add(letter.offset);
        writer.number(c++).add(letter.value.length);
        writer.string(c).add(letter.value);
    }
}
