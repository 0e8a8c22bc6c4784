package oal.stream.process;

import java.io.IOException;
import oal.stream.policy.Policies;
import oal.stream.state.BinarySerializer;
import oal.stream.state.StateSettings;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Serializer of {@link ApState}. */
public final class ApStateSerializer extends BinarySerializer<ApState> {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(ApStateSerializer.class);

    private final Policies policies;
    /** Of the states that it gives; those that it reads say theirs. */
    private final StateSettings settings;

    ApStateSerializer(Policies policies) {
        this(policies, StateSettings.NOW);
    }

    ApStateSerializer(Policies policies, StateSettings settings) {
        this.policies = policies;
        this.settings = settings;
    }

    @Override
    protected void write(ApState state, DataOutputView out) throws IOException {
        state.write(out);
    }

    @Override
    protected ApState read(DataInputView in) throws IOException {
        return ApState.read(in, policies, settings);
    }

    @Override
    public TypeSerializerSnapshot<ApState> snapshotConfiguration() {
        return new Snapshot(policies, settings);
    }

    /**
     * The bytes carry their own version and settings. A checkpoint says which policies the job had, so that all of its
     * state can be read, whatever the policies are now; {@link ApState#adopt} then takes over what is still of use. It
     * also says which settings the job had: a job with others takes over what it can or refuses, once and at its start.
     */
    public static final class Snapshot implements TypeSerializerSnapshot<ApState> {
        /** Of old: nothing is said, and rwnd-fair is the only policy. */
        private static final int RWND_FAIR = 3;
        /** Of old: the file of manifests follows. */
        private static final int POLICIES = 4;
        /** Of old: the settings follow, without a loss wait, and the file of manifests. */
        private static final int SETTINGS = 5;
        /** The settings follow, and the file of manifests, which is empty if rwnd-fair is the only policy. */
        private static final int LOSS_WAIT = 6;

        private Policies policies;
        private StateSettings settings;

        /** For Flink, which then calls {@link #readSnapshot}. */
        public Snapshot() {
            this(Policies.rwndFair(), StateSettings.NOW);
        }

        Snapshot(Policies policies, StateSettings settings) {
            this.policies = policies;
            this.settings = settings;
        }

        @Override
        public int getCurrentVersion() {
            return LOSS_WAIT;
        }

        @Override
        public void writeSnapshot(DataOutputView out) throws IOException {
            settings.write(out);
            byte[] manifests = policies.manifests();
            out.writeInt(manifests.length);
            out.write(manifests);
        }

        @Override
        public void readSnapshot(int version, DataInputView in, ClassLoader loader) throws IOException {
            if (version < RWND_FAIR || version > LOSS_WAIT) {
                throw new IOException("version " + version + " of ApStateSerializer is not known");
            }
            settings = version < SETTINGS ? StateSettings.UNSAID : StateSettings.read(in, version == LOSS_WAIT);
            policies = Policies.rwndFair();
            if (version < POLICIES) return;
            byte[] manifests = new byte[in.readInt()];
            in.readFully(manifests);
            policies = Policies.of(manifests);
        }

        /** Gives states for the job as it is now, whatever settings shaped the bytes. */
        @Override
        public TypeSerializer<ApState> restoreSerializer() {
            return new ApStateSerializer(policies);
        }

        @Override
        public TypeSerializerSchemaCompatibility<ApState> resolveSchemaCompatibility(
                TypeSerializerSnapshot<ApState> old) {
            StateSettings was = ((Snapshot) old).settings;
            was.requireReadableBy(settings);
            String changes = was.changes(settings);
            if (!changes.isEmpty()) {
                LOG.warn("the checkpoint was made with {}. The items of the {} ms before it are not made; {}", changes,
                        was.delay() * (was.decisionIntervalUs() / 1000),
                        was.labelWindowUs() == settings.labelWindowUs() && was.lossWaitUs() == settings.lossWaitUs()
                                ? "labels go on" : "labels begin with the next whole window");
            }
            return TypeSerializerSchemaCompatibility.compatibleAsIs();
        }
    }
}
