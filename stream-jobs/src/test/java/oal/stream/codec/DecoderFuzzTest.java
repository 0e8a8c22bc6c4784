package oal.stream.codec;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import oal.schema.Topic;
import oal.stream.block.RawRows;
import org.junit.jupiter.api.Test;

/**
 * Mutated golden batches, the same ones at every run. The decoder refuses or decodes; it never throws anything else and
 * never allocates more than the tables' limits allow. What it accepts can be written as rows. Set {@code -Doal.fuzz=N}
 * for more rounds.
 */
class DecoderFuzzTest {
    private static final int ROUNDS = Integer.getInteger("oal.fuzz", 60_000);
    /** All columns of all tables at their limits, and then some. */
    private static final long MAX_ALLOCATED = 256L << 20;

    private static final class Corpus {
        final List<Golden.Record> records = new ArrayList<>();

        Corpus() {
            records.addAll(Golden.records("extremes"));
            records.addAll(Golden.records("refused"));
            records.addAll(Golden.records("features").subList(0, 6));
        }
    }

    @Test
    void refusesOrDecodes() {
        Corpus corpus = new Corpus();
        Random random = new Random(20261120);
        BatchDecoder decoder = BatchDecoder.all();
        RawRows[] rows = oal.schema.Tables.ALL.stream().map(RawRows::new).toArray(RawRows[]::new);
        Map<Refusal, Integer> refused = new EnumMap<>(Refusal.class);
        int accepted = 0;
        for (int i = 0; i < ROUNDS; i++) {
            Golden.Record r = corpus.records.get(random.nextInt(corpus.records.size()));
            byte[] data = Mutation.of(r.data(), random, corpus.records);
            Topic topic = random.nextInt(8) == 0 ? Topic.values()[random.nextInt(3)] : r.topic();
            try {
                decoder.decode(topic, data);
                accepted++;
                for (TableRows t : decoder.tables(topic)) {
                    t.timesUs(decoder.header());
                    rows[t.spec.id()].add(decoder);
                    rows[t.spec.id()].writer.drain();
                }
                decoder.check("ap-1", 1_800_000_000_000_000L);
            } catch (RefusedException e) {
                refused.merge(e.reason, 1, Integer::sum);
            } catch (RuntimeException | Error e) {
                throw new AssertionError("round " + i + ": " + e + " on a batch of " + data.length + " bytes: "
                        + java.util.HexFormat.of().formatHex(data, 0, Math.min(200, data.length)), e);
            }
        }
        assertTrue(accepted > ROUNDS / 100, accepted
                + " accepted: the mutations are too wild to reach the code behind the checks");
        for (Refusal reason : List.of(Refusal.TRUNCATED, Refusal.MALFORMED, Refusal.VALUE_RANGE,
                Refusal.UNKNOWN_REVISION, Refusal.KEY_MISMATCH)) {
            assertTrue(refused.getOrDefault(reason, 0) > 0, reason + " was never reached: " + refused);
        }
    }

    @Test
    void allocationIsBounded() throws Exception {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long thread = Thread.currentThread().getId();
        // The most rows that few bytes can claim: one run as long as the table allows, a column of one count of zeros
        // each.
        for (Topic topic : Topic.values()) {
            BatchBuilder head = new BatchBuilder(topic, 0, 1_800_000_000_000_000L);
            var out = new java.io.ByteArrayOutputStream();
            out.writeBytes(head.header());
            for (var t : oal.schema.Tables.ALL) {
                if (t.topic() != topic) continue;
                var table = new java.io.ByteArrayOutputStream();
                var run = new java.io.ByteArrayOutputStream();
                BatchBuilder.varint(run, t.maxRows());
                BatchBuilder.bytes(table, 1, run.toByteArray());
                for (var c : t.columns()) {
                    if (c.kind() == oal.schema.Kind.KEY) continue;
                    var column = new java.io.ByteArrayOutputStream();
                    BatchBuilder.varint(column, 0);
                    BatchBuilder.varint(column, 2L * (t.maxRows() - 1));
                    BatchBuilder.bytes(table, c.field(), column.toByteArray());
                }
                BatchBuilder.bytes(out, t.field(), table.toByteArray());
            }
            BatchDecoder decoder = BatchDecoder.all();
            long before = threads.getThreadAllocatedBytes(thread);
            try {
                decoder.decode(topic, out.toByteArray());
                assertTrue(topic != Topic.PACKETS, "packets without a flow dictionary");
            } catch (RefusedException e) {
                assertTrue(topic == Topic.PACKETS && e.reason == Refusal.MALFORMED, e.getMessage());
            }
            long allocated = threads.getThreadAllocatedBytes(thread) - before;
            assertTrue(allocated < MAX_ALLOCATED, topic + " of " + out.size() + " bytes made it allocate " + allocated);
        }
    }
}
