package oal.stream.feature;

import oal.schema.ColumnSpec;
import oal.schema.Kind;
import oal.schema.TableSpec;
import oal.schema.Tables;
import oal.schema.Type;

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
    static final int COUNT = 5;
    static final int TOTAL = 6;
    /** From here on: the entity is the one that the feature of the number that is over has chosen. */
    static final int AT = 16;

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
    /** Its value is that of a KEY column. */
    final boolean key;
    /** The feature that chooses its entity; null: the group is over all. */
    final Feature chooser;
    /** Offset of this feature's words in an entity's cells. */
    int cell;
    /** Does another feature take the entity that has this one's value? */
    boolean chooses;
    /** Where an entity keeps this feature's value at the present instant, if it chooses. */
    int kept;

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
            key = false;
            chooser = null;
            boolean binary = op == FeatureOp.RATIO || op == FeatureOp.DIFF || op == FeatureOp.ADD;
            int back = operand(a, earlier).lookback;
            if (binary) back = Math.max(back, operand(b, earlier).lookback);
            boolean late = op == FeatureOp.LAG || op == FeatureOp.CHANGE;
            if (late && (parameter < 1 || parameter > MAX_WINDOW)) throw bad("lags by " + parameter);
            if (op == FeatureOp.EWMA && (parameter < 0 || parameter > 62)) throw bad("shifts by " + parameter);
            window = late || op == FeatureOp.EWMA ? (int) parameter : 0;
            lookback = late ? back + window : back;
            holds = false;
            return;
        }
        if (w[1] < 0 || w[1] >= Tables.ALL.size()) throw bad("names table " + w[1]);
        TableSpec spec = Tables.ALL.get((int) w[1]);
        table = spec.id();
        if (w[2] < 0 || w[2] >= spec.columns().size()) throw bad("names column " + w[2] + " of " + spec.name());
        column = (int) w[2];
        ColumnSpec c = spec.columns().get(column);
        key = c.kind() == Kind.KEY;
        if (key && (op != FeatureOp.LAST || c.type() == Type.MAC || c.type() == Type.NAME || c.type() == Type.FLOW)) {
            throw bad("reads the KEY column " + spec.name() + "." + c.name());
        }
        counterBits = c.kind() == Kind.COUNTER ? c.counterBits() : 0;
        optional = c.optional();
        if (w[3] < -1 || w[3] >= spec.keys()) {
            throw bad("filters by column " + w[3] + " of " + spec.name() + ", which is not a KEY");
        }
        filterColumn = (int) w[3];
        filterValue = w[4];
        if (w[5] < SUM || w[5] > TOTAL && w[5] < AT) throw bad("has group " + w[5]);
        group = (int) Math.min(w[5], AT);
        chooser = w[5] < AT ? null : chooser(w[5] - AT, earlier);
        if (parameter < 1 || parameter > MAX_WINDOW) throw bad("has window " + parameter);
        window = (int) parameter;
        if (a < 1 || b < 1) throw bad("scales by " + a + "/" + b);
        int back = op == FeatureOp.LAST ? 1 : window;
        lookback = chooser == null ? back : Math.max(back, chooser.lookback);
        holds = spec.event() && (needsOrder() || group != SUM);
    }

    private Feature operand(long i, Feature[] earlier) {
        if (i < 0 || i >= index) throw bad("refers to feature " + i);
        return earlier[(int) i];
    }

    private Feature chooser(long i, Feature[] earlier) {
        Feature by = operand(i, earlier);
        if (by.op.derived() || by.op == FeatureOp.SUM || by.op == FeatureOp.COUNT || by.group != MAX && by.group != MIN
                || by.table != table || by.filterColumn != filterColumn || by.filterValue != filterValue) {
            throw bad("takes the entity that feature " + i + " does not choose");
        }
        return by;
    }

    private IllegalArgumentException bad(String what) {
        return new IllegalArgumentException("feature program: feature " + index + " " + what);
    }

    /** Whether the order of rows of different entities matters to it. */
    boolean needsOrder() {
        return op != FeatureOp.SUM && op != FeatureOp.COUNT;
    }
}
