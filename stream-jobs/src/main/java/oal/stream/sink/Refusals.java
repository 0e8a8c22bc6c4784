package oal.stream.sink;

import java.util.Set;

/** Which answers of ClickHouse stay the same however often an insert is repeated. */
final class Refusals {
    private Refusals() {}

    /**
     * Error codes of ClickHouse (src/Common/ErrorCodes.cpp) that concern the statement, the schema, the value of a row
     * or the rights: they pass only when someone has acted, so they fail the job. The list is closed: every other
     * answer is tried again, and alarmed when it lasts (clickhouseRetryingSeconds).
     *
     * <p>Codes that say that bytes could not be read (6, 9, 27, 32, 33, 131, 246, …) are not here, although an insert
     * of bad bytes gives them: a half-written part on a full disk gives them too, and that passes.
     */
    private static final Set<Integer> PERMANENT = Set.of(
            8, // THERE_IS_NO_COLUMN
            10, // NOT_FOUND_COLUMN_IN_BLOCK
            15, // DUPLICATE_COLUMN
            16, // NO_SUCH_COLUMN_IN_TABLE
            20, // NUMBER_OF_COLUMNS_DOESNT_MATCH
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

    /** INCORRECT_DATA: of an insert's own blocks, as an unknown column in them, or of a part that a statement reads. */
    private static final int INCORRECT_DATA = 117;

    /** @param readsTable whether the statement reads the table, and so may meet a half-written part of it */
    static boolean isPermanent(int code, boolean readsTable) {
        return PERMANENT.contains(code) || code == INCORRECT_DATA && !readsTable;
    }
}
