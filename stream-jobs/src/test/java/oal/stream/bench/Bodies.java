package oal.stream.bench;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import oal.schema.Topic;
import oal.stream.codec.BatchBuilder;
import oal.stream.codec.BatchDecoder;
import oal.stream.codec.Capture;
import oal.stream.codec.Golden;
import oal.stream.codec.RefusedException;

/**
 * What batches consist of without their headers, so that they can be sent again at another time: of an AP, in order.
 */
final class Bodies {
    /** Samples and packets of the same ticks, with the names that their columns refer to. */
    record Pair(byte[] samples, byte[] packets, List<String> sampleNames, List<String> packetNames, int rows) {}

    private Bodies() {}

    static List<List<Pair>> load(String what) throws IOException, RefusedException {
        if (what.equals("synthetic")) return List.of(synthetic());
        List<List<Pair>> out = new ArrayList<>();
        for (Path file : Capture.committed()) out.add(capture(file));
        if (out.isEmpty()) throw new IOException("there are no captures in lab/captures to measure with");
        return out;
    }

    private static List<Pair> synthetic() {
        SyntheticAp ap = new SyntheticAp(1);
        List<Pair> out = new ArrayList<>();
        for (int i = 0; i < 32; i++) {
            BatchBuilder samples = ap.samples();
            BatchBuilder packets = ap.packets();
            out.add(new Pair(samples.body(), packets.body(), samples.names, packets.names, samples.rows()
                    + packets.rows()));
        }
        return out;
    }

    private static List<Pair> capture(Path file) throws IOException, RefusedException {
        BatchDecoder decoder = BatchDecoder.all();
        Map<Long, Pair> samples = new HashMap<>();
        List<Pair> out = new ArrayList<>();
        for (Golden.Record r : Capture.read(file)) {
            if (r.topic() == Topic.EVENTS) continue;
            decoder.decode(r.topic(), r.data());
            List<String> names = new ArrayList<>();
            for (int i = 0; i < decoder.header().names; i++) names.add(decoder.header().name(i));
            byte[] body = withoutHeader(r.data());
            if (r.topic() == Topic.SAMPLES) {
                samples.put(decoder.header().seq, new Pair(body, null, names, null, decoder.rows()));
            } else {
                Pair s = samples.remove(decoder.header().seq);
                if (s != null) out.add(new Pair(s.samples, body, s.sampleNames, names, s.rows + decoder.rows()));
            }
        }
        return out;
    }

    /** The header is a batch's first field. */
    private static byte[] withoutHeader(byte[] batch) {
        int at = 1;
        int length = 0;
        for (int shift = 0; ; shift += 7) {
            byte b = batch[at++];
            length |= (b & 0x7F) << shift;
            if (b >= 0) break;
        }
        return java.util.Arrays.copyOfRange(batch, at + length, batch.length);
    }
}
