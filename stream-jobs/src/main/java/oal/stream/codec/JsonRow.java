package oal.stream.codec;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.util.List;
import oal.schema.MessageField;
import oal.schema.RowSink;

/**
 * Writes records of one message of the contract (schema/messages.yaml) as JSON objects, field by field. Numbers are
 * exact; a uint64 is written as an unsigned number.
 */
public final class JsonRow implements RowSink {
    private static final BigInteger TWO_64 = BigInteger.ONE.shiftLeft(64);

    private final String[] names;
    private final boolean[] unsigned;
    /** Of each field: the value at which it is left out; null: none. */
    private final String[] leftOut;
    private final ByteArrayOutputStream out = new ByteArrayOutputStream(1024);
    private JsonGenerator json;

    public JsonRow(List<MessageField> fields) {
        names = fields.stream().map(MessageField::name).toArray(String[]::new);
        leftOut = fields.stream().map(MessageField::leftOut).toArray(String[]::new);
        if (leftOut[0] != null) throw new IllegalArgumentException("the first field begins the record");
        unsigned = new boolean[names.length];
        for (int i = 0; i < names.length; i++) unsigned[i] = fields.get(i).type().equals("uint64");
    }

    /** Write a field; the first one begins the record. */
    private void put(int column, JsonBytes.Value value) {
        try {
            if (column == 0) {
                out.reset();
                json = JsonBytes.generator(out);
                json.writeStartObject();
            }
            json.writeFieldName(names[column]);
            value.write(json);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The record whose last field was written, UTF-8. */
    public byte[] end() {
        try {
            json.writeEndObject();
            json.close();
            return out.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void number(int column, long value) {
        if (value < 0 && unsigned[column]) put(column, j -> j.writeNumber(BigInteger.valueOf(value).add(TWO_64)));
        else put(column, j -> j.writeNumber(value));
    }

    @Override
    public void numberOrNull(int column, Long value) {
        if (value == null) put(column, JsonGenerator::writeNull);
        else number(column, value);
    }

    @Override
    public void flag(int column, boolean value) {
        if (Boolean.toString(value).equals(leftOut[column])) return;
        put(column, j -> j.writeBoolean(value));
    }

    @Override
    public void real(int column, float value) {
        put(column, j -> j.writeNumber(value));
    }

    @Override
    public void real(int column, double value) {
        put(column, j -> j.writeNumber(value));
    }

    @Override
    public void name(int column, String value) {
        text(column, value);
    }

    @Override
    public void text(int column, String value) {
        if (value.equals(leftOut[column])) return;
        put(column, j -> j.writeString(value));
    }

    @Override
    public void bytes(int column, byte[] value) {
        put(column, j -> j.writeUTF8String(value, 0, value.length));
    }

    @Override
    public void numbers(int column, long[] values) {
        put(column, j -> j.writeArray(values, 0, values.length));
    }
}
