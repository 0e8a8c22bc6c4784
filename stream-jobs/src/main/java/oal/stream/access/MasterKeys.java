package oal.stream.access;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;

/**
 * The platform's master keys by key_id (schema/README.md, "Who made a batch"): lines {@code KEY_ID BASE64}; # begins a
 * comment.
 */
record MasterKeys(Map<Integer, byte[]> byId) {
    static final int KEY_BYTES = 32;

    /** @throws IllegalArgumentException says line and mistake, and nothing of a key */
    static MasterKeys parse(byte[] file) {
        Map<Integer, byte[]> keys = new TreeMap<>();
        String[] lines = new String(file, StandardCharsets.UTF_8).split("\n");
        for (int i = 0; i < lines.length; i++) {
            String line = lines[i].split("#", 2)[0].strip();
            if (line.isEmpty()) continue;
            String[] words = line.split("\\s+");
            byte[] key = words.length == 2 ? decode(words[1]) : null;
            int id = words[0].matches("[0-9]{1,3}") ? Integer.parseInt(words[0]) : 0;
            if (key == null || key.length != KEY_BYTES || id < 1 || id > 255 || keys.put(id, key) != null) {
                throw new IllegalArgumentException("line " + (i + 1)
                        + " is no master key; a line is: KEY_ID (1 to 255, each once) BASE64-OF-32-BYTES");
            }
        }
        if (keys.isEmpty()) {
            throw new IllegalArgumentException("there is no key in it; a line is: KEY_ID BASE64-OF-32-BYTES");
        }
        return new MasterKeys(keys);
    }

    private static byte[] decode(String base64) {
        try {
            return Base64.getDecoder().decode(base64);
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    /** Null: there is none. */
    byte[] get(int keyId) {
        return byId.get(keyId);
    }

    @Override
    public String toString() {
        return "master keys " + byId.keySet();
    }
}
