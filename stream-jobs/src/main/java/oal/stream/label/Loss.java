package oal.stream.label;

/** Downlink payload that passed the tap again because it had not arrived: a row of {@code loss_event}. */
public final class Loss {
    /** Codes of {@code loss_event.cause}. */
    public static final int UNKNOWN = 0;
    public static final int QUEUE = 1;
    public static final int AIR = 2;
    public static final int BOTH = 3;

    /** Codes of {@code loss_event.queue_counter}: what counts drops of the station's queue. */
    public static final int NO_QUEUE_COUNTER = 0;
    public static final int TXQ = 1;
    public static final int QDISC = 2;

    /** Codes of {@code loss_event.stamped_by}. */
    public static final int BY_FIRST_SIGHT = 0;
    public static final int BY_COUNTER = 1;

    /** A number that no counter gave. */
    public static final long ABSENT = -1;

    public long flowId;
    public long stationMac;
    public long seq;
    public int pkts;
    public int bytes;
    /** When it passed the tap before, and when again, µs. */
    public long seenUs;
    public long resentUs;
    /** When it was dropped, µs: not before {@link #seenUs}. */
    public long droppedUs;
    public int stampedBy;
    public int cause;
    public int queueCounter;
    /** Growth of the station's counters in between; {@link #ABSENT} where there is none. */
    public long queueDropPkts;
    public long macFailedPkts;

    /**
     * Does it count as congestion? What a queue dropped does, and what may have been: where no queue counter exists,
     * all that the air did not lose. Where the counters exist and did not move, nothing says that this access point
     * dropped it.
     */
    public boolean congestion() {
        return cause == QUEUE || cause == BOTH || cause == UNKNOWN && queueCounter == NO_QUEUE_COUNTER;
    }
}
