package oal.stream.label;

import oal.schema.Settings;
import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;

/** Rows of ClickHouse's {@code label}. */
public final class LabelRows {
    public final NativeBlockWriter writer = new NativeBlockWriter("label", StreamTables.LABEL);

    public void add(String apId, String site, LabelWindow w) {
        int c = 0;
        writer.name(c++).add(apId);
        writer.name(c++).add(site);
        writer.number(c++).add(w.startUs);
        writer.number(c++).add(Settings.LABEL_WINDOW_US);
        writer.number(c++).add(w.offeredPkts);
        writer.number(c++).add(w.offeredBytes);
        writer.number(c++).add(w.lostPkts);
        writer.number(c++).add(w.lostBytes);
        writer.number(c++).add(w.macLostPkts);
        writer.number(c++).add(w.congestionLostPkts());
        writer.number(c++).add(w.queueDropPkts);
        writer.number(c++).add(w.lossRatio());
        writer.number(c++).add(w.lossClass());
        writer.number(c++).add(Math.min(w.flows, 0xFFFF));
        writer.number(c).add(w.complete ? 1 : 0);
    }
}
