package oal.stream.sink;

import java.util.Set;

/** Which answers of ClickHouse stay the same however often an insert is repeated. */
final class Refusals {
    private Refusals() {}

    /**
     * Error codes of ClickHouse (src/Common/ErrorCodes.cpp) that concern the statement, the schema, the data or the
     * rights. All others (memory, disk full, too many parts, read-only, timeouts, shutdown) are temporary.
     */
    private static final Set<Integer> PERMANENT = Set.of(
            6, // CANNOT_PARSE_TEXT
            8, // THERE_IS_NO_COLUMN
            9, // SIZES_OF_COLUMNS_DOESNT_MATCH
            10, // NOT_FOUND_COLUMN_IN_BLOCK
            15, // DUPLICATE_COLUMN
            16, // NO_SUCH_COLUMN_IN_TABLE
            20, // NUMBER_OF_COLUMNS_DOESNT_MATCH
            27, // CANNOT_PARSE_INPUT_ASSERTION_FAILED
            32, // ATTEMPT_TO_READ_AFTER_EOF
            33, // CANNOT_READ_ALL_DATA
            36, // BAD_ARGUMENTS
            43, // ILLEGAL_TYPE_OF_ARGUMENT
            44, // ILLEGAL_COLUMN
            47, // UNKNOWN_IDENTIFIER
            48, // NOT_IMPLEMENTED
            50, // UNKNOWN_TYPE
            53, // TYPE_MISMATCH
            60, // UNKNOWN_TABLE
            62, // SYNTAX_ERROR
            69, // ARGUMENT_OUT_OF_BOUND
            70, // CANNOT_CONVERT_TYPE
            73, // UNKNOWN_FORMAT
            81, // UNKNOWN_DATABASE
            115, // UNKNOWN_SETTING
            117, // INCORRECT_DATA
            131, // TOO_LARGE_STRING_SIZE
            164, // READONLY (the user's profile, not the table's)
            192, // UNKNOWN_USER
            193, // WRONG_PASSWORD
            194, // REQUIRED_PASSWORD
            291, // DATABASE_ACCESS_DENIED
            349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
            432, // UNKNOWN_CODEC
            452, // SETTING_CONSTRAINT_VIOLATION
            469, // VIOLATED_CONSTRAINT
            497, // ACCESS_DENIED
            516, // AUTHENTICATION_FAILED
            691); // UNKNOWN_ELEMENT_OF_ENUM

    static boolean isPermanent(int code) {
        return PERMANENT.contains(code);
    }
}
