package oal.stream.state;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Strings in state: UTF-8 with a length, without the 64 KiB limit of {@code writeUTF}, which an AP could exceed. */
public final class DataText {
    private DataText() {}

    public static void write(DataOutput out, String s) throws IOException {
        byte[] utf8 = s.getBytes(StandardCharsets.UTF_8);
        out.writeInt(utf8.length);
        out.write(utf8);
    }

    public static String read(DataInput in) throws IOException {
        byte[] utf8 = new byte[in.readInt()];
        in.readFully(utf8);
        return new String(utf8, StandardCharsets.UTF_8);
    }
}
