package oal.stream.prediction;

import oal.schema.PredictionRow;
import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;

/** Rows of ClickHouse's {@code prediction}. */
public final class PredictionRows {
    /** Code of 'unknown' in the columns of what came true. */
    private static final int UNKNOWN = -1;

    /** Codes of features_match. */
    private static final int DIFFER = 0;
    private static final int SAME = 1;
    private static final int LACKED_INPUT = 2;

    public final NativeBlockWriter writer = new NativeBlockWriter("prediction", StreamTables.PREDICTION);
    private final PredictionRow.ApId row = PredictionRow.to(writer);

    /** @param o null: no item came */
    public void add(String apId, String site, String policy, Decision d, Outcome o) {
        row.apId(apId)
                .site(site)
                .ts(d.instantUs)
                .bootId(d.bootId)
                .bundle(d.bundle)
                .source(d.source)
                .version(d.version)
                .predicted(d.predicted)
                .confidencePermille(d.confidencePermille)
                .congestedPermille(d.congestedPermille)
                .leaf(d.leaf)
                .featuresMissing(d.featuresMissing)
                .evalNs(d.evalNs)
                .classNow(o == null ? UNKNOWN : o.classNow())
                .class_(o == null ? UNKNOWN : o.classThen())
                .complete(o != null && o.complete() ? 1 : 0)
                .featuresMatch(match(d, o))
                .policy(policy)
                .underControl(o == null ? UNKNOWN : o.underControl() ? 1 : 0)
                .sinceDropUs(o == null ? null : (Long) o.sinceDropUs())
                .untilDropUs(o == null ? null : (Long) o.untilDropUs());
    }

    private static int match(Decision d, Outcome o) {
        if (o == null || !d.sameProgram) return UNKNOWN;
        if (d.featuresHash == o.featuresHash()) return SAME;
        return o.lackedInput() ? LACKED_INPUT : DIFFER;
    }
}
