package oal.stream.item;

import oal.schema.ItemRow;
import oal.schema.Settings;
import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;

/** Rows of ClickHouse's {@code item}. */
public final class ItemRows {
    public final NativeBlockWriter writer = new NativeBlockWriter("item", StreamTables.ITEM);
    private final ItemRow.ApId row = ItemRow.to(writer);

    public void add(String apId, String site, String policy, long featureHash, Item item) {
        row.apId(apId)
                .site(site)
                .ts(item.tsUs)
                .bootId(item.bootId)
                .featureHash(featureHash)
                .features(item.features)
                .horizonUs(Settings.HORIZON_US)
                .classNow(item.classNow)
                .class_(item.classThen)
                .lossRatio(item.lossRatio)
                .offeredPkts(item.offeredPkts)
                .complete(item.complete ? 1 : 0)
                .policy(policy)
                .lackedInput(item.lackedInput ? 1 : 0)
                .underControl(item.underControl ? 1 : 0)
                .lossPermilleResent(item.permilleResent)
                .lossPermilleNowResent(item.permilleNowResent)
                .sinceDropUs(item.sinceDropUs)
                .untilDropUs(item.untilDropUs);
    }
}
