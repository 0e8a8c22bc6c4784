package oal.stream.access;

import java.io.Serializable;

/**
 * What {@code ap.access.v1} says up to now. Read at every start of a task, before its first batch: a batch that waited
 * in Kafka while the job was down must not get in because its access point's revocation is read a moment later.
 */
@FunctionalInterface
public interface AccessHistory extends Serializable {
    /** Waits for the broker as long as it takes. */
    Revocations read() throws Exception;
}
