package oal.stream.sink;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import net.jpountz.lz4.LZ4FrameOutputStream.BLOCKSIZE;
import net.jpountz.lz4.LZ4FrameOutputStream;
import oal.stream.block.RowBlock;

/** The insert of one table that is being filled: Native blocks, compressed as they come. */
final class InsertBuffer {
    private final ByteArrayOutputStream compressed = new ByteArrayOutputStream(1 << 16);
    private final LZ4FrameOutputStream frame;
    private int rows;
    private long rawBytes;

    InsertBuffer() {
        try {
            frame = new LZ4FrameOutputStream(compressed, BLOCKSIZE.SIZE_256KB);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot start an LZ4 frame in memory", e);
        }
    }

    void add(RowBlock block) throws IOException {
        frame.write(block.data);
        rows += block.rows;
        rawBytes += block.data.length;
    }

    int rows() {
        return rows;
    }

    long rawBytes() {
        return rawBytes;
    }

    /** Bytes held in memory now. The compressor holds up to one LZ4 block (256 KB) more. */
    long heldBytes() {
        return compressed.size();
    }

    /** Ends the frame and gives its bytes. The buffer takes no more blocks after that. */
    byte[] finish() throws IOException {
        frame.close();
        return compressed.toByteArray();
    }
}
