package oal.stream.process;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Incarnations of an access point's exporter, in the order of their first batch. The last few are kept. */
final class Incarnations {
    private static final int KEPT = 8;

    private final List<Long> boots = new ArrayList<>();

    void note(long boot) {
        if (boots.contains(boot)) return;
        if (boots.size() == KEPT) boots.remove(0);
        boots.add(boot);
    }

    /** Larger = later; −1 = forgotten, so earlier than all. */
    int order(long boot) {
        return boots.indexOf(boot);
    }

    void write(DataOutput out) throws IOException {
        out.writeByte(boots.size());
        for (long b : boots) out.writeLong(b);
    }

    void read(DataInput in) throws IOException {
        int n = in.readByte();
        for (int i = 0; i < n; i++) boots.add(in.readLong());
    }
}
