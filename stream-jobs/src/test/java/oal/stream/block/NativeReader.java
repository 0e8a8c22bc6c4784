package oal.stream.block;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads back Native blocks in tests, as text; NativeBlockTest has ClickHouse check that what is written is right. */
public final class NativeReader {
    private final ByteBuffer in;

    private NativeReader(byte[] data) {
        in = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Rows of all blocks of one table, column name → value. */
    public static List<Map<String, String>> rows(List<RowBlock> blocks, String table) {
        List<Map<String, String>> out = new ArrayList<>();
        for (RowBlock b : blocks) if (b.table.equals(table)) out.addAll(new NativeReader(b.data).read());
        return out;
    }

    private List<Map<String, String>> read() {
        List<Map<String, String>> rows = new ArrayList<>();
        while (in.hasRemaining()) {
            int columns = (int) varint();
            int n = (int) varint();
            int first = rows.size();
            for (int i = 0; i < n; i++) rows.add(new LinkedHashMap<>());
            for (int c = 0; c < columns; c++) {
                String name = string();
                String type = string();
                List<String> values = column(type, n);
                for (int i = 0; i < n; i++) rows.get(first + i).put(name, values.get(i));
            }
        }
        return rows;
    }

    private List<String> column(String type, int n) {
        List<String> out = new ArrayList<>();
        if (type.startsWith("Nullable(")) {
            byte[] isNull = new byte[n];
            in.get(isNull);
            List<String> values = column(type.substring(9, type.length() - 1), n);
            for (int i = 0; i < n; i++) out.add(isNull[i] != 0 ? null : values.get(i));
        } else if (type.equals("LowCardinality(String)")) {
            in.getLong();
            in.getLong();
            List<String> keys = new ArrayList<>();
            for (long k = in.getLong(); k > 0; k--) keys.add(string());
            in.getLong();
            for (int i = 0; i < n; i++) out.add(keys.get(in.getShort() & 0xFFFF));
        } else if (type.equals("Array(Int64)")) {
            long[] end = new long[n];
            for (int i = 0; i < n; i++) end[i] = in.getLong();
            long at = 0;
            for (int i = 0; i < n; i++) {
                List<String> values = new ArrayList<>();
                for (; at < end[i]; at++) values.add("" + in.getLong());
                out.add(values.toString());
            }
        } else {
            for (int i = 0; i < n; i++) out.add(value(type));
        }
        return out;
    }

    private String value(String type) {
        if (type.startsWith("Enum8")) {
            String code = " = " + in.get();
            for (String entry : type.substring(6, type.length() - 1).split(", ")) {
                if (entry.endsWith(code)) return entry.split("'")[1];
            }
            throw new IllegalArgumentException(type + " has no" + code);
        }
        if (type.startsWith("DateTime64")) return "" + in.getLong();
        return switch (type) {
            case "UInt8" -> "" + (in.get() & 0xFF);
            case "Int8" -> "" + in.get();
            case "Int16" -> "" + in.getShort();
            case "Int32" -> "" + in.getInt();
            case "UInt16" -> "" + (in.getShort() & 0xFFFF);
            case "UInt32" -> "" + (in.getInt() & 0xFFFFFFFFL);
            case "Float32" -> "" + in.getFloat();
            case "Float64" -> Double.toString(in.getDouble());
            case "UInt64" -> Long.toUnsignedString(in.getLong());
            case "Int64" -> "" + in.getLong();
            case "String" -> string();
            case "IPv6" -> in.getLong() + ":" + in.getLong();
            default -> throw new IllegalArgumentException(type);
        };
    }

    private String string() {
        byte[] b = new byte[(int) varint()];
        in.get(b);
        return new String(b, StandardCharsets.UTF_8);
    }

    private long varint() {
        long v = 0;
        for (int shift = 0; ; shift += 7) {
            byte b = in.get();
            v |= (long) (b & 0x7F) << shift;
            if (b >= 0) return v;
        }
    }
}
