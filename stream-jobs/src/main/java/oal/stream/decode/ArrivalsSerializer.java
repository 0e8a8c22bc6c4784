package oal.stream.decode;

import java.io.IOException;
import oal.stream.state.BinarySerializer;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** Serializer of {@link Arrivals}. */
public final class ArrivalsSerializer extends BinarySerializer<Arrivals> {
    private static final long serialVersionUID = 1L;

    @Override
    protected void write(Arrivals state, DataOutputView out) throws IOException {
        state.write(out);
    }

    @Override
    protected Arrivals read(DataInputView in) throws IOException {
        return Arrivals.read(in);
    }

    @Override
    public TypeSerializerSnapshot<Arrivals> snapshotConfiguration() {
        return new Snapshot();
    }

    /** Nothing but the class is configured. */
    public static final class Snapshot extends SimpleTypeSerializerSnapshot<Arrivals> {
        public Snapshot() {
            super(ArrivalsSerializer::new);
        }
    }
}
