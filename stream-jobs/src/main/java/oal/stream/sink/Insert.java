package oal.stream.sink;

import java.util.Objects;

/**
 * One insert that a checkpoint promises: written ahead in the checkpoint, sent to ClickHouse once the checkpoint is
 * complete, and sent again with the same token after any doubt. Nothing of it changes once it was made, so a repeated
 * insert is the same block.
 *
 * @param token deduplication token, unique per insert over all incarnations of the job
 * @param table table without the database
 * @param rows rows in the body
 * @param madeAfter checkpoint from which the writer that made this had been restored, -1 for none. A committer that was
 *     restored from another one knows by it that an earlier committer may have tried this insert already
 * @param body Native blocks in one LZ4 frame
 */
public record Insert(String token, String table, int rows, long madeAfter, byte[] body) {
    public Insert {
        Objects.requireNonNull(token, "token");
        if (!Identifiers.isPlain(table)) throw new IllegalArgumentException("not a plain table name: '" + table + "'");
        if (rows <= 0) throw new IllegalArgumentException("an insert into " + table + " needs rows, not " + rows);
        if (body.length == 0) throw new IllegalArgumentException("an insert into " + table + " needs a body");
    }

    @Override
    public String toString() {
        return "insert of " + rows + " rows (" + body.length + " bytes in LZ4) into " + table + " with token " + token;
    }
}
