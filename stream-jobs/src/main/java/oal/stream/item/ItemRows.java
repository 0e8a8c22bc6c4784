package oal.stream.item;

import oal.schema.Settings;
import oal.schema.StreamTables;
import oal.stream.block.NativeBlockWriter;

/** Rows of ClickHouse's {@code item}. */
public final class ItemRows {
    public final NativeBlockWriter writer = new NativeBlockWriter("item", StreamTables.ITEM);

    public void add(String apId, String site, long featureHash, Item item) {
        int c = 0;
        writer.name(c++).add(apId);
        writer.name(c++).add(site);
        writer.number(c++).add(item.tsUs);
        writer.number(c++).add(item.bootId);
        writer.number(c++).add(featureHash);
        writer.array(c++).add(item.features);
        writer.number(c++).add(Settings.HORIZON_US);
        writer.number(c++).add(item.classNow);
        writer.number(c++).add(item.classThen);
        writer.number(c++).add(item.lossRatio);
        writer.number(c++).add(item.offeredPkts);
        writer.number(c).add(item.complete ? 1 : 0);
    }
}
