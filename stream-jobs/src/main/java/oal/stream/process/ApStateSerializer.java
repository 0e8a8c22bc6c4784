package oal.stream.process;

import java.io.IOException;
import oal.schema.FeaturePrograms;
import oal.stream.feature.CompiledProgram;
import oal.stream.state.BinarySerializer;
import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** Serializer of {@link ApState}. */
public final class ApStateSerializer extends BinarySerializer<ApState> {
    private static final long serialVersionUID = 1L;

    /** The program whose features are made. */
    static final CompiledProgram PROGRAM = new CompiledProgram(FeaturePrograms.CONGESTION);

    @Override
    protected void write(ApState state, DataOutputView out) throws IOException {
        state.write(out);
    }

    @Override
    protected ApState read(DataInputView in) throws IOException {
        return ApState.read(in, PROGRAM);
    }

    @Override
    public TypeSerializerSnapshot<ApState> snapshotConfiguration() {
        return new Snapshot();
    }

    /** The bytes carry their own version. */
    public static final class Snapshot extends SimpleTypeSerializerSnapshot<ApState> {
        public Snapshot() {
            super(ApStateSerializer::new);
        }
    }
}
