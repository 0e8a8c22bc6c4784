package oal.stream.access;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import oal.schema.Topic;
import oal.stream.codec.RawBatch;
import oal.stream.codec.Refusal;
import oal.stream.codec.RefusedException;
import oal.stream.codec.TopicNames;
import org.apache.flink.metrics.Counter;

/**
 * Whether a batch was made by the access point that it names: the MAC in the record's header {@code oal-mac}
 * (schema/README.md, "Who made a batch"). For one thread.
 */
public final class BatchMac {
    /** Name of the Kafka header. */
    public static final String HEADER = "oal-mac";
    private static final int MAC_BYTES = 16;
    /** One byte key_id, then the MAC. */
    public static final int HEADER_BYTES = 1 + MAC_BYTES;

    /** Access points whose keys are kept. */
    static final int KEYS_KEPT = 16_384;
    /** Of name and site; the key of one with more is derived for each batch. */
    private static final int NAME_CHARS_KEPT = 128;
    private static final String ALGORITHM = "HmacSHA256";
    private static final byte[] KEY_PREFIX = ascii("oal batch key v1\0");
    private static final byte[][] PREFIX = new byte[Topic.values().length][];

    static {
        for (int i = 0; i < PREFIX.length; i++) {
            byte[] text = ascii("oal batch v1\0");
            PREFIX[i] = Arrays.copyOf(text, text.length + 1);
            PREFIX[i][text.length] = (byte) TopicNames.at(i).ordinal();
        }
    }

    private record ApKey(int keyId, String apId, String site) {}

    private final Mac hmac = hmac();
    private final byte[] sum = new byte[hmac.getMacLength()];
    private final KeyFile file;
    /** Keys with which a MAC was right, the latest used last; only access points of the platform can add to it. */
    private final Map<ApKey, SecretKeySpec> kept = new LinkedHashMap<>(64, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<ApKey, SecretKeySpec> eldest) {
            return size() > KEYS_KEPT;
        }
    };

    /**
     * @param keys file of master keys
     * @param keysRefused counts the times that it had changed and could not be used
     * @throws IOException if it cannot be used now
     */
    public BatchMac(Path keys, long nowMs, Counter keysRefused) throws IOException {
        file = new KeyFile(keys, nowMs, keysRefused);
    }

    /** Master keys in force. */
    public int masters() {
        return file.keys().byId().size();
    }

    int kept() {
        return kept.size();
    }

    /** @param apId and {@code site}: what the batch's header says */
    public void check(RawBatch batch, String apId, String site, long nowMs) throws RefusedException {
        if (batch.mac.length != HEADER_BYTES) {
            throw refused(Refusal.UNSIGNED, batch, apId, site, "it has no header " + HEADER + " of " + HEADER_BYTES
                    + " bytes");
        }
        int keyId = batch.mac[0] & 0xFF;
        if (file.refresh(nowMs) || file.keys().get(keyId) == null && file.refreshSooner(nowMs)) kept.clear();
        byte[] master = file.keys().get(keyId);
        if (master == null) throw refused(Refusal.UNKNOWN_KEY, batch, apId, site, "there is no master key " + keyId);
        ApKey name = new ApKey(keyId, apId, site);
        SecretKeySpec known = kept.get(name);
        SecretKeySpec key = known != null ? known : derive(master, apId, site);
        if (!matches(key, batch.topic, batch.value, batch.mac)) {
            throw refused(Refusal.FORGED, batch, apId, site, "the MAC of key_id " + keyId
                    + " is not this access point's");
        }
        if (known == null && apId.length() + site.length() <= NAME_CHARS_KEPT) kept.put(name, key);
    }

    private static RefusedException refused(Refusal reason, RawBatch batch, String apId, String site, String what) {
        return new RefusedException(reason, "ap_id '" + brief(apId) + "', site '" + brief(site) + "', partition "
                + batch.partition + ", offset " + batch.offset + ": " + what);
    }

    private static String brief(String s) {
        return s.length() <= 64 ? s : s.substring(0, 64) + "…";
    }

    /** The key of an access point at a site (empty: it has none). */
    SecretKeySpec derive(byte[] master, String apId, String site) {
        begin(new SecretKeySpec(master, ALGORITHM));
        hmac.update(KEY_PREFIX);
        hmac.update(apId.getBytes(StandardCharsets.UTF_8));
        hmac.update((byte) 0);
        hmac.update(site.getBytes(StandardCharsets.UTF_8));
        return new SecretKeySpec(hmac.doFinal(), ALGORITHM);
    }

    private boolean matches(SecretKeySpec key, int topic, byte[] value, byte[] header) {
        begin(key);
        hmac.update(PREFIX[topic]);
        hmac.update(value);
        try {
            hmac.doFinal(sum, 0);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(ALGORITHM, e);
        }
        return MessageDigest.isEqual(Arrays.copyOf(sum, MAC_BYTES), Arrays.copyOfRange(header, 1, HEADER_BYTES));
    }

    private void begin(SecretKeySpec key) {
        try {
            hmac.init(key);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(ALGORITHM, e);
        }
    }

    private static Mac hmac() {
        try {
            return Mac.getInstance(ALGORITHM);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("this Java has no " + ALGORITHM, e);
        }
    }

    private static byte[] ascii(String s) {
        return s.getBytes(StandardCharsets.US_ASCII);
    }
}
