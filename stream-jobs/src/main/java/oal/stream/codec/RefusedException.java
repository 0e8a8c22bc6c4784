package oal.stream.codec;

/** A record that the contract refuses. Carries no stack trace: it is an outcome, and a bad sender can cause many. */
public final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;

    public final Refusal reason;

    public RefusedException(Refusal reason, String detail) {
        super(detail, null, false, false);
        this.reason = reason;
    }

    public static RefusedException malformed(String detail) {
        return new RefusedException(Refusal.MALFORMED, detail);
    }

    static RefusedException truncated(String detail) {
        return new RefusedException(Refusal.TRUNCATED, detail);
    }

    static RefusedException valueRange(String detail) {
        return new RefusedException(Refusal.VALUE_RANGE, detail);
    }
}
