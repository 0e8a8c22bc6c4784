package oal.stream.block;

import oal.schema.DeadLetterRow;
import oal.schema.StreamTables;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.Refusal;

/** Rows of ClickHouse's {@code dead_letter}. The record itself is in Kafka, so column {@code payload} stays empty. */
public final class DeadLetterRows {
    public final NativeBlockWriter writer = new NativeBlockWriter("dead_letter", StreamTables.DEAD_LETTER);
    private final DeadLetterRow.Ts row = DeadLetterRow.to(writer);

    /** Longer texts are cut: a key and what is in a record are the sender's choice. */
    private static final int MAX_CHARS = 500;
    private static final byte[] ELSEWHERE = {};

    /** @param copied whether {@code dead.letters.v1} has the record */
    public void add(DeadLetter letter, Refusal reason, boolean copied) {
        row.ts(letter.kafkaTsMs)
                .topic(letter.topic)
                .key(cut(letter.key))
                .reason(reason.code)
                .detail(cut(letter.detail) + (copied ? "" : "; not copied: too many"))
                .kafkaPartition(letter.partition)
                .kafkaOffset(letter.offset)
                .bytes(letter.value.length)
                .payload(ELSEWHERE);
    }

    private static String cut(String text) {
        return text.length() <= MAX_CHARS ? text : text.substring(0, MAX_CHARS) + "…";
    }
}
