package oal.stream.block;

/** {@code Array(Int64)}: the end of each row's values, then all values. */
public final class ArrayColumn extends BlockColumn {
    private final Bytes ends = new Bytes(64);
    private final Bytes data = new Bytes(256);

    public void add(long[] values) {
        int p = data.grow(values.length * 8);
        for (int i = 0; i < values.length; i++) data.set(p + 8 * i, 8, values[i]);
        ends.put(8, data.size / 8);
    }

    @Override
    int values() {
        return ends.size / 8;
    }

    @Override
    int bytes() {
        return ends.size + data.size;
    }

    @Override
    void write(Bytes out) {
        out.put(ends.data, 0, ends.size);
        out.put(data.data, 0, data.size);
    }

    @Override
    void clear() {
        ends.clear();
        data.clear();
    }
}
