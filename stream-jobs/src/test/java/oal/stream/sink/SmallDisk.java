package oal.stream.sink;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;

/** A disk of some megabytes, in memory, that can be filled and emptied. Mounting takes root. */
final class SmallDisk {
    private final Path at;
    private final Path ballast;

    SmallDisk(Path at, int mib) throws IOException, InterruptedException {
        this.at = Files.createDirectories(at);
        ballast = at.resolve("ballast");
        run("mount", "-t", "tmpfs", "-o", "mode=0700,size=" + mib + "m", "oal-small-disk", at.toString());
    }

    /** Takes all space but this much. */
    void fill(long leaveBytes) throws IOException {
        byte[] some = new byte[4096];
        try (OutputStream out = Files.newOutputStream(ballast, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
            while (true) out.write(some);
        } catch (IOException full) {
            if (at.toFile().getUsableSpace() > 0) throw full;
        }
        try (FileChannel file = FileChannel.open(ballast, StandardOpenOption.WRITE)) {
            file.truncate(Math.max(0, file.size() - leaveBytes));
        }
    }

    void free() throws IOException {
        Files.deleteIfExists(ballast);
    }

    /** Also while a server still has files open there. */
    void unmount() throws IOException, InterruptedException {
        run("umount", "--lazy", at.toString());
    }

    private static void run(String... command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (process.waitFor() != 0) throw new IOException(List.of(command) + " (this test needs root): " + said);
    }
}
