package oal.stream.sink;

import java.io.IOException;

/** An insert did not succeed. It may be tried again. */
final class InsertUncertainException extends IOException {
    private static final long serialVersionUID = 1;

    /** Whether the server may have received the insert anyway: then the repetition is compared with the table. */
    final boolean mayHaveArrived;

    InsertUncertainException(String message, boolean mayHaveArrived, Throwable cause) {
        super(message, cause);
        this.mayHaveArrived = mayHaveArrived;
    }
}
