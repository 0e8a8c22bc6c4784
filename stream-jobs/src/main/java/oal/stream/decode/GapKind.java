package oal.stream.decode;

/** Irregularities in the sequence of an AP's batches; codes of ClickHouse's {@code gap.kind}. */
enum GapKind {
    /** Batches that never came before this one. */
    MISSING(1),
    /** Seen before, dropped. */
    DUPLICATE(2),
    /** Came after a later one, used. */
    REORDERED(3),
    /** A new incarnation of the exporter. */
    REBOOT(4);

    final int code;

    GapKind(int code) {
        this.code = code;
    }
}
