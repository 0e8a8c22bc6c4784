package oal.stream.access;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import oal.stream.codec.RawBatch;

/** A file of master keys and the access points' side of it, apart from the code under test. */
public final class MacKeys {
    private final Path file;
    private final Map<Integer, byte[]> masters = new TreeMap<>();

    public MacKeys(Path file, int... ids) throws IOException {
        this.file = file;
        for (int id : ids) masters.put(id, key(id));
        write();
    }

    public Path file() {
        return file;
    }

    /** Other keys from now on, in the file too. */
    public void rotate(int... ids) throws IOException {
        for (int id : ids) masters.put(id, key(id));
        masters.keySet().removeIf(id -> java.util.Arrays.stream(ids).noneMatch(i -> i == id));
        write();
    }

    private void write() throws IOException {
        StringBuilder text = new StringBuilder("# master keys\n\n");
        masters.forEach((id, key) -> text.append(id).append(' ').append(Base64.getEncoder().encodeToString(key))
                .append(" # of this year\n"));
        Files.writeString(file, text);
    }

    private static byte[] key(int id) {
        byte[] key = new byte[32];
        for (int i = 0; i < key.length; i++) key[i] = (byte) (id * 31 + i);
        return key;
    }

    /** The batch as an access point of that name and site sends it. */
    public RawBatch signed(RawBatch b, int keyId, String apId, String site) {
        byte[] own = hmac(key(keyId), AccessRecords.bytes("oal batch key v1\0" + apId + "\0" + site), new byte[0]);
        byte[] mac = hmac(own, AccessRecords.bytes("oal batch v1\0" + (char) b.topic), b.value);
        byte[] header = new byte[17];
        header[0] = (byte) keyId;
        System.arraycopy(mac, 0, header, 1, 16);
        b.mac = header;
        return b;
    }

    private static byte[] hmac(byte[] key, byte[] head, byte[] tail) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            mac.update(head);
            return mac.doFinal(tail);
        } catch (java.security.GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }
}
