package oal.stream.process;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.stream.state.DataText;
import oal.stream.state.StateSettings;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/**
 * State of the policies after the first, as bytes: their number, then of each its name, its program's hash, a length
 * and what {@link PolicyState#write} gives. So one that is no longer computed can be left out.
 */
final class FurtherPolicies {
    private FurtherPolicies() {}

    static void write(DataOutput out, PolicyState[] all) throws IOException {
        out.writeByte(all.length - 1);
        DataOutputSerializer bytes = new DataOutputSerializer(1 << 14);
        for (int i = 1; i < all.length; i++) {
            DataText.write(out, all[i].policy.name);
            out.writeLong(all[i].policy.featureHash);
            bytes.clear();
            all[i].write(bytes);
            out.writeInt(bytes.length());
            out.write(bytes.getSharedBuffer(), 0, bytes.length());
        }
    }

    /** Fills those of {@code all} that are there by name and program; the rest is dropped. */
    static void read(DataInput in, PolicyState[] all, StateSettings was) throws IOException {
        for (int n = in.readUnsignedByte(); n > 0; n--) {
            String name = DataText.read(in);
            long hash = in.readLong();
            byte[] bytes = new byte[in.readInt()];
            in.readFully(bytes);
            for (int i = 1; i < all.length; i++) {
                if (!all[i].policy.name.equals(name) || all[i].policy.featureHash != hash) continue;
                DataInputDeserializer of = new DataInputDeserializer(bytes);
                all[i].read(of, was);
                if (of.available() > 0) throw new IOException(of.available() + " bytes left of policy " + name);
            }
        }
    }
}
