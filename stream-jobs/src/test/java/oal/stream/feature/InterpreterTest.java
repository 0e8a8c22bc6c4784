package oal.stream.feature;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import oal.schema.FeatureProgram;
import oal.schema.Tables;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.BatchDecoder;
import org.junit.jupiter.api.Test;

/**
 * What the golden sequence does not contain: rows that are not in order, clocks that go back, programs that are wrong.
 */
class InterpreterTest {
    private static final long T0 = 1_000_000_000L;
    private static final long MISSING = Long.MIN_VALUE;

    private final List<long[]> results = new ArrayList<>();

    private static long[] feature(long op, long table, long column, long group, long window) {
        return new long[] {op, table, column, -1, 0, group, window, 1, 1, Long.MIN_VALUE + 1, Long.MAX_VALUE, MISSING};
    }

    private static CompiledProgram program(long[]... words) {
        return new CompiledProgram(new FeatureProgram("test", 100_000, words, new String[words.length], new byte[32]));
    }

    private static Interpreter interpreter(CompiledProgram p) {
        return new Interpreter(p);
    }

    private void feed(CompiledProgram p, Interpreter run, BatchBuilder b) throws Exception {
        BatchDecoder decoder = BatchDecoder.all();
        decoder.decode(b.topic, b.build());
        run.begin(new Workspace(p), b.bootId, b.t0Us, t -> results.add(run.features().clone()));
        run.add(b.topic, decoder);
        run.end(t -> results.add(run.features().clone()));
    }

    private static BatchBuilder samples(long seq, long t0) {
        return new BatchBuilder(Topic.SAMPLES, seq, t0);
    }

    private static void backlog(BatchBuilder b, long mac, long tick, long bytes) {
        b.sparse(Tables.STATION_AC, Tables.StationAc.MAC, mac, Tables.StationAc.TICK, tick,
                Tables.StationAc.BACKLOG_BYTES, bytes);
    }

    @Test
    void rowsOfEventTablesAreTakenInOrderOfTimeAcrossRuns() throws Exception {
        CompiledProgram p = program(feature(1, Tables.PACKET.id(), Tables.Packet.WINDOW_RAW, 1, 1),
                feature(2, Tables.PACKET.id(), Tables.Packet.WINDOW_RAW, 1, 1));
        BatchBuilder b = new BatchBuilder(Topic.PACKETS, 0, T0);
        b.flows.add(BatchBuilder.Flow.of(1));
        b.flows.add(BatchBuilder.Flow.of(2));
        for (int f = 0; f < 2; f++) {
            for (int i = 0; i < 10; i++) {
                b.sparse(Tables.PACKET, Tables.Packet.FLOW, f, Tables.Packet.T_US, 1 + 20_000L * i + 10_000 * f,
                        Tables.Packet.WINDOW_RAW, 100 + 2 * i + f);
            }
        }
        feed(p, interpreter(p), b);
        // Instants T0, T0 + 100 ms: the last row up to there is row 4 of flow 1 (at 90 ms).
        assertArrayEquals(new long[] {109, 9}, results.get(1));
    }

    @Test
    void rowsOfOneRunThatAreNotInOrderAreSorted() throws Exception {
        CompiledProgram p = program(feature(1, Tables.STATION_AC.id(), Tables.StationAc.BACKLOG_BYTES, 1, 1),
                feature(6, Tables.STATION_AC.id(), Tables.StationAc.BACKLOG_BYTES, 1, 1));
        BatchBuilder ordered = samples(0, T0);
        BatchBuilder mixed = samples(0, T0);
        long[][] rows = {{0, 10}, {5, 50}, {10, 20}, {20, 90}, {40, 5}};
        for (long[] r : rows) backlog(ordered, 1, r[0], r[1]);
        for (int i : new int[] {3, 0, 4, 2, 1}) backlog(mixed, 1, rows[i][0], rows[i][1]);
        feed(p, interpreter(p), ordered);
        List<long[]> want = List.copyOf(results);
        results.clear();
        feed(p, interpreter(p), mixed);
        assertEquals(want.size(), results.size());
        for (int i = 0; i < want.size(); i++) assertArrayEquals(want.get(i), results.get(i));
        assertEquals(90, results.get(1)[0]);
    }

    @Test
    void runsOfOneEntityThatAreNotInOrderAreSorted() throws Exception {
        CompiledProgram p = program(feature(1, Tables.STATION_AC.id(), Tables.StationAc.BACKLOG_BYTES, 1, 1));
        BatchBuilder b = samples(0, T0);
        backlog(b, 1, 20, 7);
        backlog(b, 2, 0, 1);
        backlog(b, 1, 10, 3);
        backlog(b, 2, 30, 1);
        feed(p, interpreter(p), b);
        assertArrayEquals(new long[] {8}, results.get(1));
    }

    @Test
    void aRowAtAnInstantBelongsToTheBucketThatEndsThere() throws Exception {
        CompiledProgram p = program(feature(1, Tables.STATION_AC.id(), Tables.StationAc.BACKLOG_BYTES, 1, 1));
        BatchBuilder b = samples(0, T0);
        backlog(b, 1, 25, 7); // exactly 100 ms
        backlog(b, 1, 26, 9);
        feed(p, interpreter(p), b);
        assertArrayEquals(new long[] {0}, results.get(0), "the group sum over none is 0");
        assertArrayEquals(new long[] {7}, results.get(1));
    }

    @Test
    void aClockThatGoesBackBeyondTheGapRestarts() throws Exception {
        CompiledProgram p = program(feature(2, Tables.STATION_AC.id(), Tables.StationAc.BACKLOG_BYTES, 1, 10));
        Interpreter run = interpreter(p);
        for (int i = 0; i < 4; i++) {
            BatchBuilder b = samples(i, T0 + 252_000L * i);
            backlog(b, 1, 0, 100 * i);
            feed(p, run, b);
        }
        assertEquals(1, run.entities());
        int before = results.size();
        long back = T0 - 500_000_000L;
        for (int i = 0; i < 4; i++) {
            BatchBuilder b = samples(4 + i, back + 252_000L * i);
            backlog(b, 1, 0, 1000 + i);
            feed(p, run, b);
        }
        assertTrue(results.size() > before + 3);
        assertArrayEquals(new long[] {0}, results.get(before));
        assertTrue(run.next() < T0);
    }

    @Test
    void entitiesWithoutARowAreForgotten() throws Exception {
        CompiledProgram p = program(feature(1, Tables.STATION_AC.id(), Tables.StationAc.BACKLOG_BYTES, 1, 1));
        Interpreter run = interpreter(p);
        for (int i = 0; i < 50; i++) {
            BatchBuilder b = samples(i, T0 + 252_000L * i);
            for (int mac = 0; mac < 10; mac++) backlog(b, 10L * i + mac, 0, 1);
            feed(p, run, b);
            assertTrue(run.entities() <= 20, "stations of this batch and of the one before");
        }
    }

    @Test
    void wrongProgramsAreRefusedWithTheReason() {
        long[] ok = feature(1, 0, 5, 1, 1);
        Object[][] bad = {
            {"unknown operator", with(ok, 0, 9)}, {"table", with(ok, 1, 99)}, {"column", with(ok, 2, 99)},
                    {"KEY column", with(ok, 2, 0)},
            {"not a KEY", with(ok, 3, 5)}, {"group", with(ok, 5, 0)}, {"window", with(ok, 6, 65)},
                    {"window", with(ok, 6, 0)},
            {"scales by", with(ok, 7, 0)}, {"scales by", with(ok, 8, 0)}, {"empty range", with(with(ok, 9, 2), 10, 1)},
            {"refers to feature", with(feature(16, -1, 0, 0, 1), 7, 0)}, {"words", new long[11]},
        };
        for (Object[] b : bad) {
            String message = assertThrows(IllegalArgumentException.class, () -> program((long[]) b[1]), (String) b[0])
                    .getMessage();
            assertTrue(message.contains((String) b[0]), message);
        }
    }

    private static long[] with(long[] words, int i, long v) {
        long[] w = words.clone();
        w[i] = v;
        return w;
    }
}
