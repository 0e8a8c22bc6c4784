package oal.stream.block;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** {@code LowCardinality(String)}: a dictionary of the block's distinct strings and a 16-bit index a row. */
public final class NameColumn extends BlockColumn {
    /** Distinct strings after which the block has to be written; the index has 16 bits. */
    static final int MAX_NAMES = 60_000;

    private static final long KEYS_WITH_DICTIONARY = 1;
    private static final long INDEX_UINT16 = 1;
    private static final long HAS_ADDITIONAL_KEYS = 1 << 9;
    private static final long UPDATE_DICTIONARY = 1 << 10;

    private final Map<String, Integer> index = new HashMap<>();
    private final Bytes keys = new Bytes(64);
    private final Bytes rows = new Bytes(256);
    private String last;
    private int lastIndex;

    public void addRepeated(String s, int times) {
        if (times <= 0) return;
        int at = rows.size;
        rows.put(2, indexOf(s));
        rows.repeat(at, times);
    }

    public void add(String s) {
        rows.put(2, indexOf(s));
    }

    private int indexOf(String s) {
        if (s.equals(last)) return lastIndex;
        Integer known = index.get(s);
        if (known == null) {
            known = index.size();
            if (known > 0xFFFF) throw new IllegalStateException("more than 65536 distinct names in one block");
            index.put(s, known);
            keys.putString(s.getBytes(StandardCharsets.UTF_8));
        }
        last = s;
        lastIndex = known;
        return known;
    }

    int names() {
        return index.size();
    }

    @Override
    int values() {
        return rows.size / 2;
    }

    @Override
    int bytes() {
        return keys.size + rows.size + 32;
    }

    @Override
    void write(Bytes out) {
        out.put(8, KEYS_WITH_DICTIONARY);
        out.put(8, INDEX_UINT16 | HAS_ADDITIONAL_KEYS | UPDATE_DICTIONARY);
        out.put(8, index.size());
        out.put(keys.data, 0, keys.size);
        out.put(8, values());
        out.put(rows.data, 0, rows.size);
    }

    @Override
    void clear() {
        index.clear();
        keys.clear();
        rows.clear();
        last = null;
    }
}
