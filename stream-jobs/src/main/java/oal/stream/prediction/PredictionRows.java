package oal.stream.prediction;

import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;

/** Rows of ClickHouse's {@code prediction}. */
public final class PredictionRows {
    /** Code of 'unknown' in the columns that tell what came true. */
    private static final int UNKNOWN = -1;

    public final NativeBlockWriter writer = new NativeBlockWriter("prediction", StreamTables.PREDICTION);

    /** @param o null: no item came */
    public void add(String apId, String site, Decision d, Outcome o) {
        int c = 0;
        writer.name(c++).add(apId);
        writer.name(c++).add(site);
        writer.number(c++).add(d.instantUs);
        writer.number(c++).add(d.bootId);
        writer.number(c++).add(d.bundle);
        writer.number(c++).add(d.source);
        writer.number(c++).add(d.version);
        writer.number(c++).add(d.predicted);
        writer.number(c++).add(d.confidencePermille);
        writer.number(c++).add(d.congestedPermille);
        writer.number(c++).add(d.leaf);
        writer.number(c++).add(d.featuresMissing);
        writer.number(c++).add(d.evalNs);
        writer.number(c++).add(o == null ? UNKNOWN : o.classNow());
        writer.number(c++).add(o == null ? UNKNOWN : o.classThen());
        writer.number(c++).add(o != null && o.complete() ? 1 : 0);
        writer.number(c).add(match(d, o));
    }

    private static int match(Decision d, Outcome o) {
        if (o == null || !d.sameProgram) return UNKNOWN;
        return d.featuresHash == o.featuresHash() ? 1 : 0;
    }
}
