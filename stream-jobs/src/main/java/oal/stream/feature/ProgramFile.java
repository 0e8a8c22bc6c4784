package oal.stream.feature;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import oal.schema.FeatureProgram;

/** A compiled program as a bundle carries it: "OALF1", interval, number of features, words; big-endian. */
public final class ProgramFile {
    private static final String MAGIC = "OALF1";
    /** Of a feature. */
    public static final int WORDS = 12;

    private ProgramFile() {}

    /** A program of its bytes; its features are called {@code name} and their number. */
    static FeatureProgram read(String name, byte[] data) {
        ByteBuffer in = ByteBuffer.wrap(data);
        try {
            byte[] magic = new byte[MAGIC.length()];
            in.get(magic);
            if (!new String(magic, StandardCharsets.US_ASCII).equals(MAGIC)) {
                throw new IllegalArgumentException(name + " is no feature program");
            }
            long interval = in.getLong();
            long n = in.getLong();
            if (n < 0 || n * WORDS * Long.BYTES != in.remaining()) {
                throw new IllegalArgumentException(name + " has not the length of " + n + " features");
            }
            long[][] words = new long[(int) n][WORDS];
            String[] names = new String[words.length];
            for (int i = 0; i < words.length; i++) {
                names[i] = name + i;
                for (int k = 0; k < WORDS; k++) words[i][k] = in.getLong();
            }
            return new FeatureProgram(name, interval, words, names, hash(data));
        } catch (BufferUnderflowException e) {
            throw new IllegalArgumentException(name + " is cut short", e);
        }
    }

    /** A program of its words, {@link #WORDS} a feature, with its hash. */
    public static FeatureProgram program(String name, long intervalUs, long[][] words, String[] names) {
        ByteBuffer out = ByteBuffer.allocate(MAGIC.length() + 2 * Long.BYTES + words.length * WORDS * Long.BYTES);
        out.put(MAGIC.getBytes(StandardCharsets.US_ASCII)).putLong(intervalUs).putLong(words.length);
        for (long[] feature : words) for (long word : feature) out.putLong(word);
        return new FeatureProgram(name, intervalUs, words, names, hash(out.array()));
    }

    private static byte[] hash(byte[] file) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(file);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
