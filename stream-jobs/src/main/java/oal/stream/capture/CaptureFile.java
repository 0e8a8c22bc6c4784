package oal.stream.capture;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.zip.CRC32;
import oal.schema.Settings;
import oal.schema.Topic;

/**
 * Batches in a file (format: ap-exporter/src/wire/capture_file.h). A reader that meets a broken record looks for the
 * next good one, so that a file that was cut short or damaged loses what was damaged only.
 */
public final class CaptureFile {
    /** One batch as it would go to Kafka. */
    public record Batch(Topic topic, byte[] data) {}

    private static final byte[] MAGIC = {'O', 'A', 'L', 'C', 'A', 'P', 1, 0};
    /** "OALr", little-endian. */
    private static final int RECORD = 'O' | 'A' << 8 | 'L' << 16 | 'r' << 24;
    private static final int HEADER_BYTES = 24;
    private static final int AT_TOPIC = 4;
    private static final int AT_LENGTH = 8;
    private static final int AT_CRC = 20;
    private static final Topic[] TOPICS = Topic.values();

    private final ByteBuffer bytes;
    private final CRC32 crc = new CRC32();
    private int at = MAGIC.length;
    private long skippedBytes;

    private CaptureFile(ByteBuffer bytes) {
        this.bytes = bytes;
    }

    /** @throws IOException if the file cannot be read, has 2 GB or more, or is no capture */
    public static CaptureFile open(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file)) {
            if (channel.size() > Integer.MAX_VALUE) {
                throw new IOException(file + " has " + channel.size() + " bytes; a capture has less than 2 GB");
            }
            return of(channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size()), file.toString());
        }
    }

    static CaptureFile of(ByteBuffer bytes, String name) throws IOException {
        if (bytes.limit() < MAGIC.length || !bytes.slice(0, MAGIC.length).equals(ByteBuffer.wrap(MAGIC))) {
            throw new IOException(name + " is no capture: it does not begin with OALCAP, version 1");
        }
        return new CaptureFile(bytes.order(ByteOrder.LITTLE_ENDIAN));
    }

    /** Bytes so far that belong to no good record. */
    public long skippedBytes() {
        return skippedBytes;
    }

    /** The next good batch; null at the end. */
    public Batch next() {
        for (; at < bytes.limit(); at++, skippedBytes++) {
            int length = length(at);
            if (length < 0) continue;
            byte[] data = new byte[length];
            bytes.get(at + HEADER_BYTES, data);
            Batch batch = new Batch(TOPICS[bytes.get(at + AT_TOPIC)], data);
            at += HEADER_BYTES + length;
            return batch;
        }
        return null;
    }

    /** Bytes of the batch whose record begins here; −1 if none does. */
    private int length(int p) {
        if (bytes.limit() - p < HEADER_BYTES || bytes.getInt(p) != RECORD) return -1;
        int topic = bytes.get(p + AT_TOPIC);
        int length = bytes.getInt(p + AT_LENGTH);
        if (topic < 0 || topic >= TOPICS.length || length < 0 || length > Settings.MAX_BATCH_BYTES
                || length > bytes.limit() - p - HEADER_BYTES) {
            return -1;
        }
        crc.reset();
        crc.update(bytes.slice(p + AT_TOPIC, AT_CRC - AT_TOPIC));
        crc.update(bytes.slice(p + HEADER_BYTES, length));
        return (int) crc.getValue() == bytes.getInt(p + AT_CRC) ? length : -1;
    }
}
