package oal.stream.operator;

import java.io.Serializable;
import java.time.Duration;

/**
 * Settings that a deployment may choose.
 *
 * @param lateness how long, in the broker's time, labels and features wait for a batch that is missing or for the other
 *     topic's
 * @param stateTtl state of an access point that sent nothing for so long is dropped
 * @param flush rows go to the sink at least so often
 * @param blockRows rows of a block after which it goes to the sink
 * @param blockBytes bytes after which it does
 * @param rawRows whether the raw tables are written; labels and items are in any case
 * @param mostWaiting batches of an access point that may wait for their turn; beyond that the oldest has it
 * @param macKeysFile file of the platform's master keys, on every TaskManager; empty: no MAC is checked
 */
public record PipelineSettings(Duration lateness, Duration stateTtl, Duration flush, int blockRows, int blockBytes,
        boolean rawRows, int mostWaiting, String macKeysFile)
        implements Serializable {
    private static final long serialVersionUID = 1L;

    /**
     * Sources are kept in step to seconds of the broker's time. But when the broker was away, an access point sends
     * what it kept within such seconds: the exporter's 2 MiB are minutes of a busy one, and a quarter of an hour of an
     * idle one. So many batches of one topic are 34 minutes.
     */
    public static final int MOST_WAITING = 8192;

    public static final PipelineSettings DEFAULT =
            new PipelineSettings(Duration.ofSeconds(5), Duration.ofHours(1), Duration.ofMillis(500), 65_536, 4 << 20,
                    true, MOST_WAITING, "");

    public PipelineSettings {
        if (lateness.isNegative()) throw new IllegalArgumentException("lateness must not be negative: " + lateness);
        if (stateTtl.compareTo(lateness) <= 0) {
            throw new IllegalArgumentException("stateTtl (" + stateTtl + ") must be longer than lateness (" + lateness
                    + ")");
        }
        if (flush.isNegative() || flush.isZero()) {
            throw new IllegalArgumentException("flush must be positive: " + flush);
        }
        if (mostWaiting < 1) throw new IllegalArgumentException("mostWaiting must be positive: " + mostWaiting);
        if (blockRows < 1 || blockBytes < 1) {
            throw new IllegalArgumentException("blocks of " + blockRows + " rows, " + blockBytes + " bytes");
        }
    }

    public PipelineSettings withLateness(Duration d) {
        return new PipelineSettings(d, stateTtl, flush, blockRows, blockBytes, rawRows, mostWaiting, macKeysFile);
    }

    public PipelineSettings withStateTtl(Duration d) {
        return new PipelineSettings(lateness, d, flush, blockRows, blockBytes, rawRows, mostWaiting, macKeysFile);
    }

    public PipelineSettings withRawRows(boolean b) {
        return new PipelineSettings(lateness, stateTtl, flush, blockRows, blockBytes, b, mostWaiting, macKeysFile);
    }

    public PipelineSettings withMostWaiting(int batches) {
        return new PipelineSettings(lateness, stateTtl, flush, blockRows, blockBytes, rawRows, batches, macKeysFile);
    }

    public PipelineSettings withMacKeysFile(String file) {
        return new PipelineSettings(lateness, stateTtl, flush, blockRows, blockBytes, rawRows, mostWaiting, file);
    }
}
