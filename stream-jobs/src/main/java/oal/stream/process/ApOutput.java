package oal.stream.process;

import oal.stream.decode.AcceptedBatch;
import oal.stream.item.Item;
import oal.stream.label.LabelWindow;
import oal.stream.label.Loss;
import oal.stream.neighbour.ApSecond;
import oal.stream.policy.Policy;
import oal.stream.prediction.Decision;
import oal.stream.prediction.Outcome;

/** Receives what an access point's batches give; by default nothing. Arguments are valid only during the call. */
interface ApOutput {
    default void label(ApState ap, String apId, LabelWindow window) {}

    default void loss(ApState ap, String apId, Loss loss) {}

    default void item(ApState ap, String apId, Policy policy, Item item) {}

    /** @param outcome null: no item came */
    default void prediction(ApState ap, Policy policy, Decision decision, Outcome outcome) {}

    /** Decisions that cannot be used; their rows are in {@code decision}. */
    default void decisionsRefused(int decisions) {}

    /** Decisions on destinations, which no item can meet; their rows are in {@code decision}. */
    default void decisionsUnpaired(int decisions) {}

    /** What the AP did on one of its channels during the last second. The callee keeps the object. */
    default void second(ApSecond second) {}

    /** @param lateUs how far behind the time that labels and features have reached the batch ended */
    default void late(AcceptedBatch batch, long lateUs) {}
}
