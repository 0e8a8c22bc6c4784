package oal.stream.codec;

import java.util.List;
import java.util.Random;

/** Damages batches: bits, bytes, cuts, insertions, the end of another. */
public final class Mutation {
    private Mutation() {}

    /** Another batch like {@code from}. */
    public static byte[] of(byte[] from, Random random, List<Golden.Record> corpus) {
        byte[] data = from.clone();
        for (int n = 1 + random.nextInt(4); n > 0; n--) {
            if (data.length == 0) return data;
            int at = random.nextInt(data.length);
            // Headers and lengths are at the front and small: hit them often.
            if (random.nextBoolean()) at = Math.min(at, random.nextInt(96));
            switch (random.nextInt(7)) {
                case 0 -> data[at] ^= (byte) (1 << random.nextInt(8));
                case 1 -> data[at] = (byte) random.nextInt(256);
                case 2 -> data[at] = (byte) 0xFF;
                case 3 -> data = java.util.Arrays.copyOf(data, at);
                case 4 -> { // cut out
                    int length = Math.min(data.length - at, 1 + random.nextInt(8));
                    byte[] shorter = new byte[data.length - length];
                    System.arraycopy(data, 0, shorter, 0, at);
                    System.arraycopy(data, at + length, shorter, at, shorter.length - at);
                    data = shorter;
                }
                case 5 -> { // put in
                    byte[] longer = new byte[data.length + 1 + random.nextInt(4)];
                    System.arraycopy(data, 0, longer, 0, at);
                    for (int i = at; i < at + longer.length - data.length; i++) longer[i] = (byte) random.nextInt(256);
                    System.arraycopy(data, at, longer, at + longer.length - data.length, data.length - at);
                    data = longer;
                }
                case 6 -> { // the end of another
                    byte[] other = corpus.get(random.nextInt(corpus.size())).data();
                    int keep = Math.min(at, other.length);
                    byte[] spliced = other.clone();
                    System.arraycopy(data, 0, spliced, 0, keep);
                    data = spliced;
                }
                default -> throw new IllegalStateException();
            }
        }
        return data;
    }
}
