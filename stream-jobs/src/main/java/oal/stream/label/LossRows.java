package oal.stream.label;

import oal.schema.LossEventRow;
import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;

/** Rows of ClickHouse's {@code loss_event}. */
public final class LossRows {
    public final NativeBlockWriter writer = new NativeBlockWriter("loss_event", StreamTables.LOSS_EVENT);
    private final LossEventRow.ApId row = LossEventRow.to(writer);

    public void add(String apId, String site, long bootId, Loss l) {
        row.apId(apId)
                .site(site)
                .ts(l.droppedUs)
                .bootId(bootId)
                .flowId(l.flowId)
                .stationMac(l.stationMac)
                .seen(l.seenUs)
                .resent(l.resentUs)
                .seq(l.seq)
                .pkts(l.pkts)
                .bytes(l.bytes)
                .cause(l.cause)
                .stampedBy(l.stampedBy)
                .queueCounter(l.queueCounter)
                .queueDropPkts(orNull(l.queueDropPkts))
                .macFailedPkts(orNull(l.macFailedPkts))
                .congestion(l.congestion() ? 1 : 0);
    }

    private static Long orNull(long counted) {
        return counted == Loss.ABSENT ? null : counted;
    }
}
