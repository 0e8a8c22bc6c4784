package oal.stream.block;

/** Integers, enumerations, times and floats of one width; {@code Nullable} or not. */
public final class NumberColumn extends BlockColumn {
    private final int width;
    private final Bytes data = new Bytes(256);
    private final Bytes nulls;

    NumberColumn(int width, boolean nullable) {
        this.width = width;
        this.nulls = nullable ? new Bytes(64) : null;
    }

    public void add(long value) {
        data.put(width, value);
        if (nulls != null) nulls.put(1, 0);
    }

    public void add(float value) {
        if (width != 4) throw new IllegalStateException("a Float32 in a column of " + width + " bytes");
        add((long) Float.floatToRawIntBits(value));
    }

    public void add(double value) {
        if (width != 8) throw new IllegalStateException("a Float64 in a column of " + width + " bytes");
        add(Double.doubleToRawLongBits(value));
    }

    public void addRepeated(long value, int times) {
        if (times <= 0) return;
        int at = data.size;
        data.put(width, value);
        data.repeat(at, times);
        if (nulls != null) nulls(times, 0);
    }

    public void addNulls(int times) {
        if (nulls == null) throw new IllegalStateException("the column is not Nullable");
        int at = data.grow(width * times);
        java.util.Arrays.fill(data.data, at, data.size, (byte) 0);
        nulls(times, 1);
    }

    /** Values {@code from[at … at + n)}. */
    public void addAll(long[] from, int at, int n) {
        int p = data.grow(n * width);
        byte[] out = data.data;
        switch (width) {
            case 1 -> {
                for (int i = 0; i < n; i++) out[p + i] = (byte) from[at + i];
            }
            case 2 -> {
                for (int i = 0; i < n; i++) data.set(p + 2 * i, 2, from[at + i]);
            }
            case 4 -> {
                for (int i = 0; i < n; i++) data.set(p + 4 * i, 4, from[at + i]);
            }
            default -> {
                for (int i = 0; i < n; i++) data.set(p + 8 * i, 8, from[at + i]);
            }
        }
        if (nulls != null) nulls(n, 0);
    }

    private void nulls(int n, int flag) {
        int at = nulls.grow(n);
        java.util.Arrays.fill(nulls.data, at, at + n, (byte) flag);
    }

    @Override
    int values() {
        return data.size / width;
    }

    @Override
    int bytes() {
        return data.size + (nulls == null ? 0 : nulls.size);
    }

    @Override
    void write(Bytes out) {
        if (nulls != null) out.put(nulls.data, 0, nulls.size);
        out.put(data.data, 0, data.size);
    }

    @Override
    void clear() {
        data.clear();
        if (nulls != null) nulls.clear();
    }
}
