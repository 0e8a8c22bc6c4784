package oal.stream.sink;

import java.io.IOException;

/** ClickHouse refused an insert for a reason that no repetition cures: schema, rights, data. Someone has to act. */
public final class InsertRefusedException extends IOException {
    private static final long serialVersionUID = 1;

    InsertRefusedException(String message) {
        super(message);
    }
}
