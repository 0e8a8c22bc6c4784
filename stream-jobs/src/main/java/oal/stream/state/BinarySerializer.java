package oal.stream.state;

import java.io.IOException;
import org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.core.memory.DataOutputView;

/**
 * Serializer of a mutable state object that writes and reads itself. Its bytes begin with their length, so that they
 * can be copied without being read.
 *
 * @param <T> the state; one large object per key, so that a batch costs one access
 */
public abstract class BinarySerializer<T> extends TypeSerializerSingleton<T> {
    private static final long serialVersionUID = 1L;

    /**
     * Size of the state written last. Only a hint: one serializer is used by the task and by the thread that writes its
     * checkpoints.
     */
    private transient volatile int sizeHint;

    protected abstract void write(T state, DataOutputView out) throws IOException;

    protected abstract T read(DataInputView in) throws IOException;

    private DataOutputSerializer encode(T state) throws IOException {
        DataOutputSerializer bytes = new DataOutputSerializer(Math.max(256, sizeHint + sizeHint / 8));
        write(state, bytes);
        sizeHint = bytes.length();
        return bytes;
    }

    @Override
    public void serialize(T state, DataOutputView target) throws IOException {
        DataOutputSerializer bytes = encode(state);
        target.writeInt(bytes.length());
        target.write(bytes.getSharedBuffer(), 0, bytes.length());
    }

    @Override
    public T deserialize(DataInputView source) throws IOException {
        int length = source.readInt();
        byte[] bytes = new byte[length];
        source.readFully(bytes);
        DataInputDeserializer in = new DataInputDeserializer(bytes);
        T state = read(in);
        if (in.available() > 0) throw new IOException(in.available() + " bytes left of a state of " + length);
        return state;
    }

    @Override
    public T deserialize(T reuse, DataInputView source) throws IOException {
        return deserialize(source);
    }

    @Override
    public T copy(T from) {
        try {
            DataOutputSerializer bytes = encode(from);
            return read(new DataInputDeserializer(bytes.getSharedBuffer(), 0, bytes.length()));
        } catch (IOException e) {
            throw new IllegalStateException("cannot copy state", e);
        }
    }

    @Override
    public T copy(T from, T reuse) {
        return copy(from);
    }

    @Override
    public void copy(DataInputView source, DataOutputView target) throws IOException {
        int length = source.readInt();
        target.writeInt(length);
        target.write(source, length);
    }

    @Override
    public boolean isImmutableType() {
        return false;
    }

    @Override
    public T createInstance() {
        return null; // null is "no state yet"
    }

    @Override
    public int getLength() {
        return -1;
    }
}
