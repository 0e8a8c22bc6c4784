package oal.stream.feature;

import oal.schema.ColumnSpec;
import oal.schema.Kind;
import oal.schema.TableSpec;
import oal.schema.Tables;

/** One compiled feature: the twelve words by name, checked, and where its state lies in an entity's cells. */
final class Feature {
    /** A value that is missing. */
    static final long MISSING = Long.MIN_VALUE;
    static final int MAX_WINDOW = 64;
    /** Groups over entities. */
    static final int SUM = 1;
    static final int MAX = 2;
    static final int MIN = 3;
    static final int MEAN = 4;

    final int index;
    final FeatureOp op;
    final int table;
    final int column;
    final int filterColumn;
    final long filterValue;
    final int group;
    final int window;
    /** The word {@code window} as a number: scale of a ratio, shift of an ewma. */
    final long parameter;
    final long a;
    final long b;
    final long lo;
    final long hi;
    final long missing;
    final int counterBits;
    final int optional;
    /** Decision intervals that the result looks back over. */
    final int lookback;
    /** Keeps a value, or that there is one, from one event to the next. */
    final boolean holds;
    /** Offset of this feature's words in an entity's cells. */
    int cell;

    Feature(int index, long[] w, Feature[] earlier) {
        this.index = index;
        if (w.length != 12) throw bad("has " + w.length + " words, not 12");
        op = FeatureOp.of(w[0]);
        parameter = w[6];
        a = w[7];
        b = w[8];
        lo = w[9];
        hi = w[10];
        missing = w[11];
        if (lo > hi) throw bad("clamps to an empty range");
        if (op.derived()) {
            table = column = filterColumn = -1;
            filterValue = 0;
            group = counterBits = 0;
            optional = -1;
            boolean binary = op == FeatureOp.RATIO || op == FeatureOp.DIFF || op == FeatureOp.ADD;
            int back = operand(a, earlier).lookback;
            if (binary) back = Math.max(back, operand(b, earlier).lookback);
            if (op == FeatureOp.LAG && (parameter < 1 || parameter > MAX_WINDOW)) throw bad("lags by " + parameter);
            if (op == FeatureOp.EWMA && (parameter < 0 || parameter > 62)) throw bad("shifts by " + parameter);
            window = op == FeatureOp.LAG || op == FeatureOp.EWMA ? (int) parameter : 0;
            lookback = op == FeatureOp.LAG ? back + window : back;
            holds = false;
            return;
        }
        if (w[1] < 0 || w[1] >= Tables.ALL.size()) throw bad("names table " + w[1]);
        TableSpec spec = Tables.ALL.get((int) w[1]);
        table = spec.id();
        if (w[2] < 0 || w[2] >= spec.columns().size()) throw bad("names column " + w[2] + " of " + spec.name());
        column = (int) w[2];
        ColumnSpec c = spec.columns().get(column);
        if (c.kind() == Kind.KEY) throw bad("reads the KEY column " + spec.name() + "." + c.name());
        counterBits = c.kind() == Kind.COUNTER ? c.counterBits() : 0;
        optional = c.optional();
        if (w[3] < -1 || w[3] >= spec.keys()) {
            throw bad("filters by column " + w[3] + " of " + spec.name() + ", which is not a KEY");
        }
        filterColumn = (int) w[3];
        filterValue = w[4];
        if (w[5] < SUM || w[5] > MEAN) throw bad("has group " + w[5]);
        group = (int) w[5];
        if (parameter < 1 || parameter > MAX_WINDOW) throw bad("has window " + parameter);
        window = (int) parameter;
        if (a < 1 || b < 1) throw bad("scales by " + a + "/" + b);
        lookback = op == FeatureOp.LAST ? 1 : window;
        holds = spec.event() && (needsOrder() || group != SUM);
    }

    private Feature operand(long i, Feature[] earlier) {
        if (i < 0 || i >= index) throw bad("refers to feature " + i);
        return earlier[(int) i];
    }

    private IllegalArgumentException bad(String what) {
        return new IllegalArgumentException("feature program: feature " + index + " " + what);
    }

    /** Whether the order of rows of different entities matters to it. */
    boolean needsOrder() {
        return op != FeatureOp.SUM && op != FeatureOp.COUNT;
    }
}
