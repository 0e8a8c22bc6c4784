package oal.stream.sink;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** Layout of an {@link Insert} in checkpoints. Version 1: token, table, rows, madeAfter, length of the body, body. */
final class InsertSerializer implements SimpleVersionedSerializer<Insert> {
    private static final int VERSION = 1;

    @Override
    public int getVersion() {
        return VERSION;
    }

    @Override
    public byte[] serialize(Insert insert) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(insert.body().length + 128);
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeUTF(insert.token());
        out.writeUTF(insert.table());
        out.writeInt(insert.rows());
        out.writeLong(insert.madeAfter());
        out.writeInt(insert.body().length);
        out.write(insert.body());
        return bytes.toByteArray();
    }

    @Override
    public Insert deserialize(int version, byte[] serialized) throws IOException {
        if (version != VERSION) {
            throw new IOException("an insert in the checkpoint has layout version " + version + ", this job reads "
                    + VERSION
                    + ": restore with the release that wrote the checkpoint, or a newer one");
        }
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(serialized));
        String token = in.readUTF();
        String table = in.readUTF();
        int rows = in.readInt();
        long madeAfter = in.readLong();
        byte[] body = new byte[in.readInt()];
        in.readFully(body);
        return new Insert(token, table, rows, madeAfter, body);
    }
}
