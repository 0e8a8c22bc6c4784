package oal.stream.neighbour;

import java.io.IOException;
import oal.stream.state.BinarySerializer;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** Serializer of {@link ChannelState}. */
public final class ChannelStateSerializer extends BinarySerializer<ChannelState> {
    private static final long serialVersionUID = 1L;

    @Override
    protected void write(ChannelState state, DataOutputView out) throws IOException {
        state.write(out);
    }

    @Override
    protected ChannelState read(DataInputView in) throws IOException {
        return ChannelState.read(in);
    }

    @Override
    public TypeSerializerSnapshot<ChannelState> snapshotConfiguration() {
        return new Snapshot();
    }

    /** Nothing but the class is configured. */
    public static final class Snapshot extends SimpleTypeSerializerSnapshot<ChannelState> {
        public Snapshot() {
            super(ChannelStateSerializer::new);
        }
    }
}
