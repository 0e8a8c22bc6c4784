package oal.stream.process;

import java.io.IOException;
import oal.stream.policy.Policies;
import oal.stream.state.BinarySerializer;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** Serializer of {@link ApState}. */
public final class ApStateSerializer extends BinarySerializer<ApState> {
    private static final long serialVersionUID = 1L;

    private final Policies policies;

    ApStateSerializer(Policies policies) {
        this.policies = policies;
    }

    @Override
    protected void write(ApState state, DataOutputView out) throws IOException {
        state.write(out);
    }

    @Override
    protected ApState read(DataInputView in) throws IOException {
        return ApState.read(in, policies);
    }

    @Override
    public TypeSerializerSnapshot<ApState> snapshotConfiguration() {
        return new Snapshot(policies);
    }

    /**
     * The bytes carry their own version. A checkpoint says which policies the job had, so that all of its state can be
     * read, whatever the policies are now; {@link ApState#adopt} then takes over what is still of use.
     */
    public static final class Snapshot implements TypeSerializerSnapshot<ApState> {
        /** As ever: nothing is said, and rwnd-fair is the only policy. */
        private static final int RWND_FAIR = 3;
        /** The file of manifests follows. */
        private static final int POLICIES = 4;

        private Policies policies;

        /** For Flink, which then calls {@link #readSnapshot}. */
        public Snapshot() {
            this(Policies.rwndFair());
        }

        Snapshot(Policies policies) {
            this.policies = policies;
        }

        @Override
        public int getCurrentVersion() {
            return policies.manifests().length == 0 ? RWND_FAIR : POLICIES;
        }

        @Override
        public void writeSnapshot(DataOutputView out) throws IOException {
            byte[] manifests = policies.manifests();
            if (manifests.length == 0) return;
            out.writeInt(manifests.length);
            out.write(manifests);
        }

        @Override
        public void readSnapshot(int version, DataInputView in, ClassLoader loader) throws IOException {
            if (version == RWND_FAIR) return;
            if (version != POLICIES) throw new IOException("version " + version + " of ApStateSerializer is not known");
            byte[] manifests = new byte[in.readInt()];
            in.readFully(manifests);
            policies = Policies.of(manifests);
        }

        @Override
        public TypeSerializer<ApState> restoreSerializer() {
            return new ApStateSerializer(policies);
        }

        @Override
        public TypeSerializerSchemaCompatibility<ApState> resolveSchemaCompatibility(
                TypeSerializerSnapshot<ApState> old) {
            return TypeSerializerSchemaCompatibility.compatibleAsIs();
        }
    }
}
