package oal.stream.feature;

import java.nio.ByteBuffer;
import oal.schema.FeatureProgram;

/** Reads a compiled program as a bundle carries it: "OALF1", interval, number of features, words; big-endian. */
final class ProgramFile {
    private ProgramFile() {}

    static FeatureProgram read(String name, byte[] data) throws Exception {
        ByteBuffer in = ByteBuffer.wrap(data);
        byte[] magic = new byte[5];
        in.get(magic);
        if (!new String(magic, java.nio.charset.StandardCharsets.US_ASCII).equals("OALF1")) {
            throw new IllegalArgumentException(name + " is no feature program");
        }
        long interval = in.getLong();
        long[][] words = new long[(int) in.getLong()][12];
        String[] names = new String[words.length];
        for (int i = 0; i < words.length; i++) {
            names[i] = name + i;
            for (int k = 0; k < 12; k++) words[i][k] = in.getLong();
        }
        return new FeatureProgram(name, interval, words, names, java.security.MessageDigest.getInstance("SHA-256")
                .digest(data));
    }
}
