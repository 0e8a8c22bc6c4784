package oal.stream.access;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import oal.schema.Topic;
import oal.stream.codec.Golden;
import oal.stream.codec.RawBatch;
import oal.stream.codec.Refusal;
import oal.stream.codec.RefusedException;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.SimpleCounter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BatchMacTest {
    @TempDir
    Path folder;

    private final Counter refusedFiles = new SimpleCounter();

    private static RawBatch batch(int bytes) {
        byte[] value = new byte[bytes];
        Arrays.fill(value, (byte) 'x');
        return new RawBatch("ap-1", Topic.SAMPLES, value, 0, 3, 77);
    }

    private BatchMac macs(MacKeys keys) throws IOException {
        return new BatchMac(keys.file(), 0, refusedFiles);
    }

    private static Refusal refusal(BatchMac macs, RawBatch b, String apId, String site, long nowMs) {
        return assertThrows(RefusedException.class, () -> macs.check(b, apId, site, nowMs)).reason;
    }

    @Test
    void theContractsVectorsAreRight() throws Exception {
        List<Golden.Record> records = Golden.records("extremes");
        HexFormat hex = HexFormat.of();
        BatchMac macs = null;
        String[] key = null;
        int checked = 0;
        for (String line : Golden.lines("macs.txt")) {
            String[] words = line.split(" ");
            if (words[0].equals("key")) {
                key = words;
                byte[] master = hex.parseHex(words[2]);
                Path file = Files.writeString(folder.resolve("masters"), words[1] + " " + Base64.getEncoder()
                        .encodeToString(master) + "\n");
                macs = new BatchMac(file, 0, refusedFiles);
                assertArrayEquals(hex.parseHex(words[5]), macs.derive(master, words[3], site(words)).getEncoded());
                continue;
            }
            Topic topic = Topic.values()[Integer.parseInt(words[1])];
            int n = Integer.parseInt(words[2]);
            byte[] value = words[0].equals("record") ? records.get(n).data() : batch(n).value;
            byte[] header = hex.parseHex(words[3]);
            macs.check(new RawBatch(key[3], topic, value, header, 0, 0, 0), key[3], site(key), 0);
            header[1 + checked % 16] ^= (byte) (1 << checked % 8);
            assertEquals(Refusal.FORGED, refusal(macs, new RawBatch(key[3], topic, value, header, 0, 0, 0), key[3],
                    site(key), 0));
            checked++;
        }
        assertEquals(90, checked);
    }

    private static String site(String[] keyLine) {
        return keyLine[4].equals("-") ? "" : keyLine[4];
    }

    @Test
    void aMacHoldsForItsNameSiteTopicAndBytesOnly() throws Exception {
        MacKeys keys = new MacKeys(folder.resolve("masters"), 1, 2);
        BatchMac macs = macs(keys);
        RawBatch good = keys.signed(batch(300), 2, "ap-1", "lab");
        macs.check(good, "ap-1", "lab", 0);
        assertEquals(Refusal.FORGED, refusal(macs, good, "ap-2", "lab", 0));
        assertEquals(Refusal.FORGED, refusal(macs, good, "ap-1", "hall", 0));
        assertEquals(Refusal.FORGED, refusal(macs, good, "ap-1", "", 0));
        RawBatch other = new RawBatch(good.key, Topic.EVENTS, good.value, good.mac, 0, 3, 77);
        assertEquals(Refusal.FORGED, refusal(macs, other, "ap-1", "lab", 0));
        RawBatch longer = new RawBatch(good.key, Topic.SAMPLES, Arrays.copyOf(good.value, 301), good.mac, 0, 3, 77);
        assertEquals(Refusal.FORGED, refusal(macs, longer, "ap-1", "lab", 0));
        RawBatch underOtherKey = keys.signed(batch(300), 2, "ap-1", "lab");
        underOtherKey.mac[0] = 1;
        assertEquals(Refusal.FORGED, refusal(macs, underOtherKey, "ap-1", "lab", 0));
        macs.check(good, "ap-1", "lab", 0);
    }

    @Test
    void theRefusalNamesApKeyPartitionAndOffset() throws Exception {
        MacKeys keys = new MacKeys(folder.resolve("masters"), 1);
        RawBatch forged = keys.signed(batch(9), 1, "ap-2", "lab");
        RefusedException e = assertThrows(RefusedException.class, () -> macs(keys).check(forged, "ap-1", "lab", 0));
        assertEquals("ap_id 'ap-1', site 'lab', partition 3, offset 77: the MAC of key_id 1 is not this access point's",
                e.getMessage());
        assertEquals(Refusal.UNSIGNED, refusal(macs(keys), batch(9), "ap-1", "lab", 0));
    }

    @Test
    void keysAreRotatedWithoutARestart() throws Exception {
        MacKeys keys = new MacKeys(folder.resolve("masters"), 1);
        BatchMac macs = macs(keys);
        RawBatch old = keys.signed(batch(50), 1, "ap-1", "lab");
        RawBatch next = keys.signed(batch(50), 2, "ap-1", "lab");
        macs.check(old, "ap-1", "lab", 0);
        assertEquals(Refusal.UNKNOWN_KEY, refusal(macs, next, "ap-1", "lab", 0));
        keys.rotate(1, 2);
        assertEquals(Refusal.UNKNOWN_KEY, refusal(macs, next, "ap-1", "lab", KeyFile.READ_AGAIN_MS - 1),
                "an unknown key does not make it read for every batch");
        macs.check(next, "ap-1", "lab", KeyFile.READ_AGAIN_MS);
        macs.check(old, "ap-1", "lab", KeyFile.READ_AGAIN_MS);
        assertEquals(2, macs.masters());
        keys.rotate(2);
        long later = KeyFile.READ_AGAIN_MS + KeyFile.READ_EVERY_MS;
        assertEquals(Refusal.UNKNOWN_KEY, refusal(macs, old, "ap-1", "lab", later));
        macs.check(next, "ap-1", "lab", later);
        assertEquals(0, refusedFiles.getCount());
    }

    @Test
    void aBrokenFileKeepsTheOldKeysAndIsCountedOnceUntilItIsMended() throws Exception {
        MacKeys keys = new MacKeys(folder.resolve("masters"), 1);
        BatchMac macs = macs(keys);
        RawBatch b = keys.signed(batch(50), 1, "ap-1", "lab");
        long now = 0;
        Files.writeString(keys.file(), "1 short\n");
        for (int i = 0; i < 3; i++) macs.check(b, "ap-1", "lab", now += KeyFile.READ_EVERY_MS);
        assertEquals(1, refusedFiles.getCount());
        Files.delete(keys.file());
        for (int i = 0; i < 3; i++) macs.check(b, "ap-1", "lab", now += KeyFile.READ_EVERY_MS);
        assertEquals(2, refusedFiles.getCount());
        keys.rotate(1);
        macs.check(b, "ap-1", "lab", now += KeyFile.READ_EVERY_MS);
        Files.delete(keys.file());
        macs.check(b, "ap-1", "lab", now + KeyFile.READ_EVERY_MS);
        assertEquals(3, refusedFiles.getCount(), "after it was mended it is news again");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "# none\n", "1\n", "1 AAAA\n", "0 K\n", "256 K\n", "-1 K\n", "x K\n", "1 K K\n",
            "1 K\n1 K\n", "1 K=\n", "1 !K\n"})
    void aFileThatIsNoneStopsTheStartAndShowsNoKey(String text) throws Exception {
        String key = Base64.getEncoder().encodeToString(new byte[32]);
        Path file = Files.writeString(folder.resolve("masters"), text.replace("K", key));
        IOException e = assertThrows(IOException.class, () -> new BatchMac(file, 0, refusedFiles));
        assertTrue(e.getMessage().contains("mac.keys.file") && e.getMessage().contains(file.toString())
                && !e.getMessage().contains(key), e.getMessage());
        assertThrows(IOException.class, () -> new BatchMac(folder.resolve("absent"), 0, refusedFiles));
    }

    @Test
    void theKeysKeptAreBoundedAndOnlyThoseOfRightMacs() throws Exception {
        MacKeys keys = new MacKeys(folder.resolve("masters"), 1);
        BatchMac macs = macs(keys);
        RawBatch foreign = keys.signed(batch(1), 1, "ap-1", "lab");
        for (int i = 0; i < 100; i++) refusal(macs, foreign, "other-" + i, "lab", 0);
        assertEquals(0, macs.kept());
        String longName = "n".repeat(200);
        macs.check(keys.signed(batch(1), 1, longName, ""), longName, "", 0);
        assertEquals(0, macs.kept());
        for (int i = 0; i < BatchMac.KEYS_KEPT + 100; i++) {
            macs.check(keys.signed(batch(1), 1, "ap-" + i, "lab"), "ap-" + i, "lab", 0);
        }
        assertEquals(BatchMac.KEYS_KEPT, macs.kept());
    }
}
