package oal.stream.sink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import net.jpountz.lz4.LZ4FrameInputStream;
import oal.stream.block.RowBlock;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.junit.jupiter.api.Test;

class InsertWriterTest {
    private static final SinkLimits SMALL = new SinkLimits(10, 4, 1);

    private static InsertWriter writer(OptionalLong restored) {
        return new InsertWriter(SMALL, 0, restored, new UnregisteredMetricsGroup());
    }

    private static RowBlock block(String table, int rows, int bytes) {
        byte[] data = new byte[bytes];
        data[0] = (byte) rows;
        return new RowBlock(table, rows, data);
    }

    private static byte[] raw(Insert insert) throws IOException {
        return new LZ4FrameInputStream(new ByteArrayInputStream(insert.body())).readAllBytes();
    }

    @Test
    void gathersTheBlocksOfATableInOrder() throws Exception {
        InsertWriter writer = writer(OptionalLong.empty());
        writer.write(new RowBlock("a", 1, new byte[] {1, 2}), null);
        writer.write(new RowBlock("b", 1, new byte[] {9}), null);
        writer.write(new RowBlock("a", 2, new byte[] {3}), null);
        List<Insert> inserts = List.copyOf(writer.prepareCommit());
        assertEquals(List.of("a", "b"), inserts.stream().map(Insert::table).toList());
        assertEquals(List.of(3, 1), inserts.stream().map(Insert::rows).toList());
        assertArrayEquals(new byte[] {1, 2, 3}, raw(inserts.get(0)));
        assertTrue(writer.prepareCommit().isEmpty(), "what was handed over is gone");
    }

    @Test
    void closesAnInsertAtItsLimitsAndNeverSplitsABlock() throws Exception {
        InsertWriter writer = writer(OptionalLong.empty());
        writer.write(block("a", 3, 2), null);
        writer.write(block("a", 2, 2), null); // 5 rows would be too many
        writer.write(block("a", 1, 9), null); // 11 bytes would be too many
        writer.write(block("a", 9, 30), null); // too large by itself
        Collection<Insert> inserts = writer.prepareCommit();
        assertEquals(List.of(3, 2, 1, 9), inserts.stream().map(Insert::rows).toList());
    }

    @Test
    void neverGivesATokenTwice() throws Exception {
        InsertWriter first = writer(OptionalLong.of(7));
        InsertWriter second = writer(OptionalLong.of(7));
        Stream.Builder<Insert> all = Stream.builder();
        for (InsertWriter writer : List.of(first, second)) {
            for (int checkpoint = 0; checkpoint < 3; checkpoint++) {
                writer.write(block("a", 1, 1), null);
                writer.write(block("b", 1, 1), null);
                writer.prepareCommit().forEach(all);
            }
        }
        List<Insert> inserts = all.build().toList();
        assertEquals(inserts.size(), inserts.stream().map(Insert::token).collect(Collectors.toSet()).size());
        assertTrue(inserts.stream().allMatch(insert -> insert.madeAfter() == 7));
    }
}
