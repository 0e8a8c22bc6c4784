package oal.stream.sink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class InsertSerializerTest {
    private final InsertSerializer serializer = new InsertSerializer();
    private final Insert insert = new Insert("token-é", "station", 7, 41, new byte[] {1, 2, 3});

    @Test
    void comesBackAsItWas() throws IOException {
        Insert back = serializer.deserialize(serializer.getVersion(), serializer.serialize(insert));
        assertEquals(insert.token(), back.token());
        assertEquals(insert.table(), back.table());
        assertEquals(insert.rows(), back.rows());
        assertEquals(insert.madeAfter(), back.madeAfter());
        assertArrayEquals(insert.body(), back.body());
    }

    @Test
    void refusesALayoutItDoesNotKnow() {
        IOException e = assertThrows(IOException.class, () -> serializer.deserialize(2, serializer.serialize(insert)));
        assertTrue(e.getMessage().contains("layout version 2"), e.getMessage());
    }

    @Test
    void refusesACutInsert() throws IOException {
        byte[] bytes = serializer.serialize(insert);
        assertThrows(EOFException.class, () -> serializer.deserialize(1, Arrays.copyOf(bytes, bytes.length - 1)));
    }
}
