package oal.stream.block;

/** {@code IPv6}; an IPv4 address becomes ::ffff:a.b.c.d. */
public final class AddressColumn extends BlockColumn {
    private final Bytes data = new Bytes(256);

    /** @param bytes 4 or 16 */
    public void addRepeated(byte[] from, int at, int bytes, int times) {
        if (times <= 0) return;
        int start = data.size;
        if (bytes == 4) {
            data.put(8, 0);
            data.put(2, 0);
            data.put(2, 0xFFFF);
        } else if (bytes != 16) {
            throw new IllegalArgumentException("an address of " + bytes + " bytes");
        }
        data.put(from, at, bytes);
        data.repeat(start, times);
    }

    @Override
    int values() {
        return data.size / 16;
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
    }
}
