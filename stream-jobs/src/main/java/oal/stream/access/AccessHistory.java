package oal.stream.access;

import java.io.Serializable;

/**
 * What {@code ap.access.v1} says up to now. It is read at every start of a task, before the first batch: otherwise a
 * batch that waited in Kafka could be used before its access point's revocation is read.
 */
@FunctionalInterface
public interface AccessHistory extends Serializable {
    /** Waits for the broker as long as it takes. */
    Revocations read() throws Exception;
}
