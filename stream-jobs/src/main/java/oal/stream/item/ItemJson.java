package oal.stream.item;

import oal.schema.Settings;
import oal.schema.TrainingItemMessage;
import oal.stream.codec.JsonRow;

/** An item as a record of {@code training.items.v1} (schema/messages.yaml, training_item). */
public final class ItemJson {
    private final JsonRow json = new JsonRow(TrainingItemMessage.FIELDS);
    private final TrainingItemMessage.ApId record = TrainingItemMessage.to(json);

    public TrainingItem of(String apId, String site, String policy, long featureHash, Item item) {
        record.apId(apId)
                .site(site)
                .tsUs(item.tsUs)
                .bootId(item.bootId)
                .featureHash(featureHash)
                .features(item.features)
                .horizonUs(Settings.HORIZON_US)
                .classNow(item.classNow)
                .class_(item.classThen)
                .lossRatio(item.lossRatio)
                .offeredPkts(item.offeredPkts)
                .complete(item.complete)
                .policy(policy)
                .lackedInput(item.lackedInput)
                .underControl(item.underControl)
                .lossPermilleResent(item.permilleResent)
                .lossPermilleNowResent(item.permilleNowResent)
                .sinceDropUs(item.sinceDropUs)
                .untilDropUs(item.untilDropUs);
        return new TrainingItem(apId, json.end());
    }
}
