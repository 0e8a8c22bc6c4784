package oal.stream.feature;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import oal.schema.FeatureProgram;

/** Reads a compiled program as a bundle carries it: "OALF1", interval, number of features, words; big-endian. */
final class ProgramFile {
    private static final String MAGIC = "OALF1";
    private static final int WORDS = 12;

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
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(data);
            return new FeatureProgram(name, interval, words, names, hash);
        } catch (BufferUnderflowException e) {
            throw new IllegalArgumentException(name + " is cut short", e);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
