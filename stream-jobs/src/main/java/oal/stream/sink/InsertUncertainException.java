package oal.stream.sink;

import java.io.IOException;

/** An insert did not succeed for now. It may be tried again. */
final class InsertUncertainException extends IOException {
    private static final long serialVersionUID = 1;

    /** Whether the server may have got the insert all the same: then the repetition is checked against the table. */
    final boolean mayHaveArrived;

    InsertUncertainException(String message, boolean mayHaveArrived, Throwable cause) {
        super(message, cause);
        this.mayHaveArrived = mayHaveArrived;
    }
}
