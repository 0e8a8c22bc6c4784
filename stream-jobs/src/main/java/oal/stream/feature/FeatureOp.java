package oal.stream.feature;

/** Operators of feature programs (schema/README.md). */
enum FeatureOp {
    LAST(1),
    DELTA(2),
    RATE(3),
    MAX(4),
    MIN(5),
    MEAN(6),
    SUM(7),
    COUNT(8),
    RATIO(16),
    EWMA(17),
    LAG(18),
    DIFF(19),
    ADD(20),
    CHANGE(21);

    private final int code;

    FeatureOp(int code) {
        this.code = code;
    }

    static FeatureOp of(long code) {
        for (FeatureOp op : values()) if (op.code == code) return op;
        throw new IllegalArgumentException("feature program: unknown operator " + code);
    }

    /** Does it use an earlier result? */
    boolean late() {
        return this == LAG || this == CHANGE;
    }

    boolean derived() {
        return code >= RATIO.code;
    }
}
