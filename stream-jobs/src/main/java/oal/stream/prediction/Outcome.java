package oal.stream.prediction;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import oal.stream.item.Item;

/**
 * What an item says about the decision of its instant.
 *
 * @param untilMs broker's time, ms, until which a decision may still come for it
 */
public record Outcome(long bootId, long instantUs, int classNow, int classThen, boolean complete, boolean lackedInput,
        boolean underControl, long sinceDropUs, long untilDropUs, long featuresHash, long untilMs) {
    /** In the state. */
    private static final int COMPLETE = 1;
    private static final int LACKED_INPUT = 2;
    private static final int UNDER_CONTROL = 4;

    static Outcome of(Item item, long untilMs) {
        return new Outcome(item.bootId, item.tsUs, item.classNow, item.classThen, item.complete, item.lackedInput,
                item.underControl, item.sinceDropUs, item.untilDropUs, hash(item.features), untilMs);
    }

    /**
     * {@code decision.features_hash} of a vector: 64-bit FNV-1a over its values, big-endian, without the highest bit.
     */
    public static long hash(long[] features) {
        long h = 0xcbf29ce484222325L;
        for (long x : features) {
            for (int shift = 56; shift >= 0; shift -= 8) h = (h ^ (x >>> shift & 0xFF)) * 0x100000001b3L;
        }
        return h & Long.MAX_VALUE;
    }

    void write(DataOutput out) throws IOException {
        out.writeLong(bootId);
        out.writeLong(instantUs);
        out.writeByte(classNow);
        out.writeByte(classThen);
        out.writeByte((complete ? COMPLETE : 0) | (lackedInput ? LACKED_INPUT : 0)
                | (underControl ? UNDER_CONTROL : 0));
        out.writeInt((int) sinceDropUs);
        out.writeInt((int) untilDropUs);
        out.writeLong(featuresHash);
        out.writeLong(untilMs);
    }

    /** @param saysDrops whether it was written with the times of drops */
    static Outcome read(DataInput in, boolean saysDrops) throws IOException {
        long bootId = in.readLong();
        long instantUs = in.readLong();
        int classNow = in.readUnsignedByte();
        int classThen = in.readUnsignedByte();
        int marks = in.readUnsignedByte();
        long since = saysDrops ? in.readInt() : Item.NONE;
        long until = saysDrops ? in.readInt() : Item.NONE;
        return new Outcome(bootId, instantUs, classNow, classThen, (marks & COMPLETE) != 0, (marks & LACKED_INPUT) != 0,
                (marks & UNDER_CONTROL) != 0, since, until, in.readLong(), in.readLong());
    }
}
