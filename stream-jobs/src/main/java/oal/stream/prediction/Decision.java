package oal.stream.prediction;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;

/** A decision of an access point's tree at one instant (row of {@code decision}). */
public final class Decision {
    /** Broker's time of the record that brought it, ms since 1970. */
    public long kafkaMs;
    public long bootId;
    public long instantUs;
    public long bundle;
    /** Code of {@code prediction.source}: 0 unknown, 1 registry, 2 online. */
    public int source;
    public long version;
    public int predicted;
    public int confidencePermille;
    public int congestedPermille;
    public int leaf;
    public long featuresHash;
    public int featuresMissing;
    public long evalNs;
    /** The AP's feature program is this job's, so that hashes of vectors can be compared. */
    public boolean sameProgram;

    void write(DataOutput out) throws IOException {
        out.writeLong(kafkaMs);
        out.writeLong(bootId);
        out.writeLong(instantUs);
        out.writeLong(bundle);
        out.writeByte(source);
        out.writeLong(version);
        out.writeByte(predicted);
        out.writeShort(confidencePermille);
        out.writeShort(congestedPermille);
        out.writeShort(leaf);
        out.writeLong(featuresHash);
        out.writeByte(featuresMissing);
        out.writeLong(evalNs);
        out.writeBoolean(sameProgram);
    }

    static Decision read(DataInput in) throws IOException {
        Decision d = new Decision();
        d.kafkaMs = in.readLong();
        d.bootId = in.readLong();
        d.instantUs = in.readLong();
        d.bundle = in.readLong();
        d.source = in.readUnsignedByte();
        d.version = in.readLong();
        d.predicted = in.readUnsignedByte();
        d.confidencePermille = in.readUnsignedShort();
        d.congestedPermille = in.readUnsignedShort();
        d.leaf = in.readUnsignedShort();
        d.featuresHash = in.readLong();
        d.featuresMissing = in.readUnsignedByte();
        d.evalNs = in.readLong();
        d.sameProgram = in.readBoolean();
        return d;
    }
}
