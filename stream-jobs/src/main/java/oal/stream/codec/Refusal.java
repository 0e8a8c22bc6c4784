package oal.stream.codec;

/**
 * Why a record is refused whole (schema/README.md, "What is refused"). The code is that of ClickHouse's
 * {@code dead_letter.reason}.
 */
public enum Refusal {
    OVERSIZED(1),
    TRUNCATED(2),
    MALFORMED(3),
    VALUE_RANGE(4),
    UNKNOWN_REVISION(5),
    KEY_MISMATCH(6),
    TIME_RANGE(7),
    /** No MAC on it. */
    UNSIGNED(8),
    /** Made with a master key that the platform does not have, or no longer has. */
    UNKNOWN_KEY(9),
    /** The MAC is not that of the access point named. */
    FORGED(10),
    /** Sent after the access point was revoked. */
    REVOKED(11);

    public final int code;

    Refusal(int code) {
        this.code = code;
    }

    /** Name in the contract. */
    public String label() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }
}
