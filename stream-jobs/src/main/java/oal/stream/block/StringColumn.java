package oal.stream.block;

import java.nio.charset.StandardCharsets;

/** Strings that seldom repeat. */
public final class StringColumn extends BlockColumn {
    private final Bytes data = new Bytes(256);
    private int values;

    public void add(String s) {
        add(s.getBytes(StandardCharsets.UTF_8));
    }

    public void add(byte[] s) {
        data.putString(s);
        values++;
    }

    @Override
    int values() {
        return values;
    }

    @Override
    int bytes() {
        return data.size;
    }

    @Override
    void write(Bytes out) {
        out.put(data.data, 0, data.size);
    }

    @Override
    void clear() {
        data.clear();
        values = 0;
    }
}
