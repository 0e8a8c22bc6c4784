package oal.stream.prediction;

import java.util.function.Consumer;
import oal.schema.Settings;
import oal.schema.Tables;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.BatchHeader;
import oal.stream.codec.TableRows;

/** Reads decisions from batches of events that were accepted before. */
public final class DecisionReader {
    /** A decision is made within ticks of its instant; one with another time would be paired with the wrong item. */
    private static final long MAX_FROM_ROW_US = 10_000_000;

    /** Of the current batch. */
    private TableRows rows;

    /** Marks the columns that are read, for {@link BatchDecoder#only}. */
    public static void wants(boolean[][] wanted) {
        java.util.Arrays.fill(wanted[Tables.DECISION.id()], true);
    }

    /**
     * Hands on the batch's decisions.
     *
     * @param sameProgram whether this job computes the feature program that the batch names
     * @return decisions that cannot be used: instant far from the row's time, or no such class or probability
     */
    public int read(BatchDecoder decoder, long kafkaMs, boolean sameProgram, Consumer<Decision> to) {
        rows = decoder.table(Tables.DECISION.id());
        BatchHeader header = decoder.header();
        long[] timeUs = rows.timesUs(header);
        int refused = 0;
        int row = 0;
        for (int run = 0; run < rows.runs; run++) {
            for (int end = row + rows.runRows[run]; row < end; row++) {
                long instantUs = value(Tables.Decision.INSTANT_US, row);
                long predicted = value(Tables.Decision.CLASS, row);
                long confidence = value(Tables.Decision.CONFIDENCE_PERMILLE, row);
                long congested = value(Tables.Decision.CONGESTED_PERMILLE, row);
                if (Math.abs(instantUs - timeUs[row]) > MAX_FROM_ROW_US || predicted >= Settings.CLASS_NAMES.size()
                        || confidence > 1000 || congested > 1000) {
                    refused++;
                    continue;
                }
                Decision d = new Decision();
                d.kafkaMs = kafkaMs;
                d.bootId = header.bootId;
                d.instantUs = instantUs;
                d.bundle = value(Tables.Decision.BUNDLE, run);
                long source = value(Tables.Decision.SOURCE, run);
                d.source = source == 1 || source == 2 ? (int) source : 0;
                d.version = value(Tables.Decision.VERSION, run);
                d.predicted = (int) predicted;
                d.confidencePermille = (int) confidence;
                d.congestedPermille = (int) congested;
                d.leaf = (int) value(Tables.Decision.LEAF, row);
                d.featuresHash = value(Tables.Decision.FEATURES_HASH, row);
                d.featuresMissing = (int) value(Tables.Decision.FEATURES_MISSING, row);
                d.evalNs = value(Tables.Decision.EVAL_NS, row);
                d.sameProgram = sameProgram;
                to.accept(d);
            }
        }
        return refused;
    }

    private long value(int column, int at) {
        return rows.column(column)[at];
    }
}
