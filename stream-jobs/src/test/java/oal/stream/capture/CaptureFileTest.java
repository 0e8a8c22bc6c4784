package oal.stream.capture;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import oal.stream.codec.Capture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CaptureFileTest {
    private static final byte[] WHOLE = bytes();

    @TempDir
    Path folder;

    private static byte[] bytes() {
        try {
            return Files.readAllBytes(Capture.committed().get(0));
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static List<byte[]> read(byte[] bytes, long wantSkipped) throws IOException {
        CaptureFile file = CaptureFile.of(ByteBuffer.wrap(bytes), "test");
        List<byte[]> out = new ArrayList<>();
        for (CaptureFile.Batch b = file.next(); b != null; b = file.next()) out.add(b.data());
        assertEquals(wantSkipped, file.skippedBytes());
        return out;
    }

    @Test
    void aDamagedRecordIsSkippedAndTheNextOneFound() throws Exception {
        List<byte[]> good = read(WHOLE, 0);
        byte[] damaged = WHOLE.clone();
        damaged[8 + 24 + 5] ^= 1; // within the first record's batch
        List<byte[]> left = read(damaged, 24 + good.get(0).length);
        assertEquals(good.size() - 1, left.size());
        for (int i = 0; i < left.size(); i++) assertArrayEquals(good.get(i + 1), left.get(i));
    }

    @Test
    void aFileThatWasCutShortLosesItsLastRecord() throws Exception {
        List<byte[]> good = read(WHOLE, 0);
        int last = 24 + good.get(good.size() - 1).length;
        assertEquals(good.size() - 1, read(Arrays.copyOf(WHOLE, WHOLE.length - 1), last - 1).size());
    }

    @Test
    void anAbsurdLengthIsNotBelieved() throws Exception {
        byte[] damaged = WHOLE.clone();
        Arrays.fill(damaged, 8 + 8, 8 + 12, (byte) 0xFF);
        assertEquals(read(WHOLE, 0).size() - 1, read(damaged, 24 + read(WHOLE, 0).get(0).length).size());
    }

    @Test
    void theCommandSaysWhatIsWrong() throws Exception {
        Path text = Files.writeString(folder.resolve("no.oalcap"), "no capture at all");
        assertTrue(run(1, text.toString()).contains("is no capture"));
        assertTrue(run(1, folder.resolve("absent").toString()).contains("no such file"));
        assertTrue(run(2).contains("usage: items [--losses] CAPTURE"));
        assertTrue(run(2, "--nonsense").contains("usage: items [--losses] CAPTURE"));
        assertThrows(IOException.class, () -> CaptureFile.of(ByteBuffer.wrap(new byte[3]), "short"));
    }

    private static String run(int want, String... arguments) {
        ByteArrayOutputStream log = new ByteArrayOutputStream();
        assertEquals(want, CaptureItems.run(List.of(arguments), new ByteArrayOutputStream(), new PrintStream(log)));
        return log.toString();
    }
}
