package oal.stream.platform;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.math.BigInteger;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import oal.schema.ClickHouseColumn;
import oal.schema.RowSink;
import oal.stream.codec.Refusal;
import oal.stream.codec.RefusedException;
import oal.stream.codec.StrictJson;

/** A column of a platform table: how its JSON value is read, checked and put into the table's block. */
abstract sealed class JsonColumn {
    final String name;
    /** {@code table.column}. */
    final String path;

    private JsonColumn(String table, ClickHouseColumn column) {
        name = column.name();
        path = table + "." + name;
    }

    /** Value at the parser's token, as {@link #add} takes it. */
    abstract Object read(JsonParser json) throws IOException, RefusedException;

    abstract void add(RowSink row, int column, Object value);

    /** Value of a column that is left out or null. */
    Object absent() throws RefusedException {
        throw new RefusedException(Refusal.MALFORMED, path + " is missing");
    }

    RefusedException type(JsonToken got, String wanted) {
        return new RefusedException(Refusal.MALFORMED, path + " must be " + wanted + ", not " + kind(got));
    }

    private static String kind(JsonToken token) {
        return switch (token) {
            case VALUE_STRING -> "a string";
            case VALUE_NUMBER_INT -> "an integer";
            case VALUE_NUMBER_FLOAT -> "a number with a fraction";
            case VALUE_TRUE, VALUE_FALSE -> "a boolean";
            case START_OBJECT -> "an object";
            case START_ARRAY -> "an array";
            case VALUE_NULL, VALUE_EMBEDDED_OBJECT, FIELD_NAME, END_OBJECT, END_ARRAY, NOT_AVAILABLE ->
                    token.toString();
        };
    }

    RefusedException range(String value, String wanted) {
        return new RefusedException(Refusal.VALUE_RANGE, path + " is " + value + "; " + wanted);
    }

    static JsonColumn of(String table, ClickHouseColumn c) {
        String type = c.type();
        if (type.equals("LowCardinality(String)")) return new Text(table, c, true);
        if (type.equals("String")) return new Text(table, c, false);
        if (type.startsWith("Enum8(")) return new Name(table, c);
        if (type.startsWith("DateTime64(6")) return new Time(table, c);
        if (type.startsWith("Float")) return new Real(table, c);
        return new Whole(table, c);
    }

    static final class Text extends JsonColumn {
        private final boolean dictionary;

        Text(String table, ClickHouseColumn c, boolean dictionary) {
            super(table, c);
            this.dictionary = dictionary;
        }

        @Override
        Object read(JsonParser json) throws IOException, RefusedException {
            if (json.currentToken() != JsonToken.VALUE_STRING) throw type(json.currentToken(), "a string");
            return json.getText();
        }

        @Override
        void add(RowSink row, int column, Object value) {
            if (dictionary) row.name(column, (String) value);
            else row.text(column, (String) value);
        }
    }

    /** Signed and unsigned integers of 8 to 64 bits. */
    static final class Whole extends JsonColumn {
        private final BigInteger min;
        private final BigInteger max;

        Whole(String table, ClickHouseColumn c) {
            super(table, c);
            boolean unsigned = c.type().startsWith("UInt");
            if (!unsigned && !c.type().startsWith("Int")) {
                throw new IllegalArgumentException("column " + path + ": no reading of JSON for type " + c.type());
            }
            int bits = Integer.parseInt(c.type().substring(unsigned ? 4 : 3));
            min = unsigned ? BigInteger.ZERO : BigInteger.ONE.shiftLeft(bits - 1).negate();
            max = BigInteger.ONE.shiftLeft(unsigned ? bits : bits - 1).subtract(BigInteger.ONE);
        }

        @Override
        Object read(JsonParser json) throws IOException, RefusedException {
            if (json.currentToken() != JsonToken.VALUE_NUMBER_INT) throw type(json.currentToken(), "an integer");
            BigInteger value = json.getBigIntegerValue();
            if (value.compareTo(min) < 0 || value.compareTo(max) > 0) {
                throw range(value.bitLength() > 80 ? "a number of " + value.bitLength() + " bits" : value.toString(),
                        "it has to be within " + min + " … " + max);
            }
            return value.longValue();
        }

        @Override
        void add(RowSink row, int column, Object value) {
            row.number(column, (long) value);
        }
    }

    /** Microseconds since 1970. */
    static final class Time extends JsonColumn {
        private static final long END_US = 4_102_444_800_000_000L; // 2100

        Time(String table, ClickHouseColumn c) {
            super(table, c);
        }

        @Override
        Object read(JsonParser json) throws IOException, RefusedException {
            if (json.currentToken() != JsonToken.VALUE_NUMBER_INT) {
                throw type(json.currentToken(), "an integer, microseconds since 1970");
            }
            BigInteger value = json.getBigIntegerValue();
            if (value.signum() < 0 || value.bitLength() > 62 || value.longValue() >= END_US) {
                throw range(value.bitLength() > 80 ? "a number of " + value.bitLength() + " bits" : value.toString(),
                        "microseconds since 1970, before 2100");
            }
            return value.longValue();
        }

        @Override
        void add(RowSink row, int column, Object value) {
            row.number(column, (long) value);
        }
    }

    /** Names of an enumeration. */
    static final class Name extends JsonColumn {
        private static final Pattern NAME = Pattern.compile("'([^']*)' = (-?\\d+)");

        private final Map<String, Long> codes = new HashMap<>();

        Name(String table, ClickHouseColumn c) {
            super(table, c);
            for (Matcher m = NAME.matcher(c.type()); m.find(); ) codes.put(m.group(1), Long.parseLong(m.group(2)));
        }

        @Override
        Object read(JsonParser json) throws IOException, RefusedException {
            if (json.currentToken() != JsonToken.VALUE_STRING) throw type(json.currentToken(), "one of " + names());
            Long code = codes.get(json.getText());
            if (code == null) {
                throw range("'" + StrictJson.brief(json.getText()) + "'", "it has to be one of " + names());
            }
            return code;
        }

        private String names() {
            return String.join(", ", codes.keySet().stream().sorted().toList());
        }

        @Override
        void add(RowSink row, int column, Object value) {
            row.number(column, (long) value);
        }
    }

    /** Floating point; NaN when missing or null. */
    static final class Real extends JsonColumn {
        private final boolean wide;

        Real(String table, ClickHouseColumn c) {
            super(table, c);
            wide = c.type().equals("Float64");
        }

        @Override
        Object read(JsonParser json) throws IOException, RefusedException {
            if (!json.currentToken().isNumeric()) throw type(json.currentToken(), "a number, or null for NaN");
            double value = json.getDoubleValue();
            if (Double.isInfinite(wide ? value : (float) value)) {
                throw range(Double.toString(value), "too large for its type");
            }
            return value;
        }

        @Override
        Object absent() {
            return Double.NaN;
        }

        @Override
        void add(RowSink row, int column, Object value) {
            if (wide) row.real(column, (double) value);
            else row.real(column, (float) (double) value);
        }
    }
}
