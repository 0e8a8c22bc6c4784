package oal.stream.label;

import oal.schema.LabelRow;
import oal.schema.Settings;
import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;

/** Rows of ClickHouse's {@code label}. */
public final class LabelRows {
    /** Code of {@code stamped}. */
    private static final int AT_DROP = 1;

    public final NativeBlockWriter writer = new NativeBlockWriter("label", StreamTables.LABEL);
    private final LabelRow.ApId row = LabelRow.to(writer);

    public void add(String apId, String site, LabelWindow w) {
        row.apId(apId)
                .site(site)
                .ts(w.startUs)
                .windowUs(Settings.LABEL_WINDOW_US)
                .offeredPkts(w.offeredPkts)
                .offeredBytes(w.offeredBytes)
                .lostPkts(w.lostPkts)
                .lostBytes(w.lostBytes)
                .macLostPkts(w.macLostPkts)
                .congestionLostPkts(w.congestionLostPkts)
                .queueDropPkts(w.queueDropPkts)
                .lossRatio(w.lossRatio())
                .class_(w.lossClass())
                .flows(Math.min(w.flows, 0xFFFF))
                .complete(w.complete ? 1 : 0)
                .stamped(AT_DROP)
                .airLostPkts(w.airLostPkts)
                .elsewhereLostPkts(w.elsewhereLostPkts)
                .congestionResentPkts(w.congestionResentPkts())
                .lossPermilleResent(w.lossPermilleResent());
    }
}
