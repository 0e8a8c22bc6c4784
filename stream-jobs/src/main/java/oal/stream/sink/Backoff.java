package oal.stream.sink;

import java.util.concurrent.ThreadLocalRandom;

/**
 * Waits that double from 100 ms to 5 s, each shortened at random by up to a fifth so that committers do not march in
 * step.
 */
final class Backoff {
    private static final long FIRST_MS = 100;
    private static final long LONGEST_MS = 5_000;

    private long nextMs = FIRST_MS;

    void await() throws InterruptedException {
        Thread.sleep(nextMs - ThreadLocalRandom.current().nextLong(nextMs / 5 + 1));
        nextMs = Math.min(2 * nextMs, LONGEST_MS);
    }
}
