package oal.stream.local;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** Servers of platform/local/, in a directory of their own: {@code oal-local COMMAND --state DIRECTORY}. */
public final class LocalPlatform {
    private static final Path ROOT = Path.of(System.getProperty("oal.root", "..")).toAbsolutePath().normalize();
    private static final long LIMIT_S = 300;

    private final Path directory;

    public LocalPlatform(Path directory) {
        this.directory = directory;
    }

    /** Returns what it prints; IOException with that and its log if it fails or takes too long. */
    public String run(String command, String... arguments) throws IOException, InterruptedException {
        String program = ROOT.resolve("platform/local/oal-local").toString();
        List<String> line = new ArrayList<>(List.of(program, command, "--state", directory.toString()));
        line.addAll(List.of(arguments));
        Path log = directory.resolve("oal-local.log");
        Process process = new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .start();
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (!process.waitFor(LIMIT_S, TimeUnit.SECONDS) || process.exitValue() != 0) {
            throw new IOException(line + " failed:\n" + out + Files.readString(log));
        }
        return out;
    }

    /** Addresses and files of the servers that run, by the names of {@code oal-local env}. */
    public Map<String, String> environment() throws IOException, InterruptedException {
        Map<String, String> environment = new HashMap<>();
        for (String line : run("env").split("\n")) {
            String[] pair = line.replaceFirst("^export ", "").split("=", 2);
            if (pair.length == 2) environment.put(pair[0], pair[1]);
        }
        return environment;
    }

    /** Stops the servers and removes their directory. */
    public void remove() throws IOException {
        try {
            run("down");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("the servers in " + directory + " were not stopped", e);
        }
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }
}
