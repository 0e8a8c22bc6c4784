package oal.stream.access;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.flink.metrics.Counter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file of master keys. It may change at any time, so that keys are rotated without a restart. It is read every few
 * seconds and compared by content, since a mounted secret changes by a link. A file that cannot be used changes
 * nothing.
 */
final class KeyFile {
    static final long READ_EVERY_MS = 5000;
    /** A batch of an unknown key makes it read the file at once, but not more often than this. */
    static final long READ_AGAIN_MS = 1000;

    private static final Logger LOG = LoggerFactory.getLogger(KeyFile.class);

    private final Path path;
    private final Counter refused;
    private byte[] content;
    private MasterKeys keys;
    private String complaint;
    private long readMs;

    /** @throws IOException if there is nothing to begin with */
    KeyFile(Path path, long nowMs, Counter refused) throws IOException {
        this.path = path;
        this.refused = refused;
        try {
            content = Files.readAllBytes(path);
            keys = MasterKeys.parse(content);
        } catch (IOException | IllegalArgumentException e) {
            throw new IOException("cannot use the master keys in " + path + " (mac.keys.file): " + e, e);
        }
        readMs = nowMs;
    }

    MasterKeys keys() {
        return keys;
    }

    /** True: the keys are others now. */
    boolean refresh(long nowMs) {
        return nowMs - readMs >= READ_EVERY_MS && read(nowMs);
    }

    /** As {@link #refresh}, sooner. */
    boolean refreshSooner(long nowMs) {
        return nowMs - readMs >= READ_AGAIN_MS && read(nowMs);
    }

    private boolean read(long nowMs) {
        readMs = nowMs;
        try {
            byte[] now = Files.readAllBytes(path);
            if (Arrays.equals(now, content)) {
                complaint = null;
                return false;
            }
            keys = MasterKeys.parse(now);
            content = now;
            complaint = null;
            LOG.info("{} has changed: {} from now on", path, keys);
            return true;
        } catch (IOException | IllegalArgumentException e) {
            // Counted once for each mistake, not for each time it is read.
            if (!e.toString().equals(complaint)) {
                complaint = e.toString();
                refused.inc();
                LOG.error("cannot use the master keys in {} (mac.keys.file) any more: {}. The {} stay in force; mend "
                        + "the file.", path, complaint, keys);
            }
            return false;
        }
    }
}
