package oal.stream.block;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Blocks of several tables under construction, and when they are full. */
public final class BlockOutput {
    private final List<NativeBlockWriter> writers = new ArrayList<>();
    private final int maxRows;
    private final int maxBytes;

    public BlockOutput(int maxRows, int maxBytes) {
        this.maxRows = maxRows;
        this.maxBytes = maxBytes;
    }

    public void add(NativeBlockWriter writer) {
        writers.add(writer);
    }

    /** Give away the blocks that are full. */
    public void drainFull(Consumer<RowBlock> to) {
        for (NativeBlockWriter w : writers) {
            if (w.rows() >= maxRows || w.bytes() >= maxBytes || w.mustDrain()) to.accept(w.drain());
        }
    }

    /** Give away all rows. */
    public void drainAll(Consumer<RowBlock> to) {
        for (NativeBlockWriter w : writers) {
            RowBlock block = w.drain();
            if (block != null) to.accept(block);
        }
    }
}
