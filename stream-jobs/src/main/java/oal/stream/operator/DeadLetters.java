package oal.stream.operator;

import oal.stream.block.BlockOutput;
import oal.stream.block.DeadLetterRows;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.Refusal;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;

/**
 * What becomes of a refused record: a small row always, so that counts are exact; and one copy of it, in Kafka, as far
 * as the budget goes.
 */
public final class DeadLetters {
    /** Characters of a key that tell one sender from another. */
    private static final int MAX_SENDER = 128;

    private final DeadLetterRows rows = new DeadLetterRows();
    private final CopyBudget budget = new CopyBudget();
    private final Counter refused;
    private final Counter notCopied;

    public DeadLetters(BlockOutput blocks, MetricGroup metrics) {
        blocks.add(rows.writer);
        refused = metrics.counter("refused");
        notCopied = metrics.counter("refusedNotCopied");
    }

    /**
     * Counts the record and writes its row.
     *
     * @return whether it is to be copied to Kafka
     */
    public boolean add(DeadLetter letter, Refusal reason, long nowMs) {
        refused.inc();
        String sender = letter.key.length() <= MAX_SENDER ? letter.key : letter.key.substring(0, MAX_SENDER);
        boolean copied = budget.take(sender, letter.value.length, nowMs);
        if (!copied) notCopied.inc();
        rows.add(letter, reason, copied);
        return copied;
    }
}
