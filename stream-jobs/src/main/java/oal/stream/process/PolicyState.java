package oal.stream.process;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.function.LongToIntFunction;
import oal.stream.feature.Input;
import oal.stream.feature.Interpreter;
import oal.stream.item.ItemJoin;
import oal.stream.policy.Policy;
import oal.stream.prediction.PredictionJoin;

/** What the job remembers about one access point for one policy. */
final class PolicyState {
    final Policy policy;
    final Interpreter features;
    final ItemJoin items = new ItemJoin();
    final PredictionJoin predictions;

    PolicyState(Policy policy, LongToIntFunction bootOrder, Input input) {
        this(policy, new PredictionJoin(bootOrder), input);
    }

    /** With the decisions that wait; items and features begin anew. */
    PolicyState(Policy policy, PredictionJoin predictions, Input input) {
        this.policy = policy;
        this.predictions = predictions;
        features = new Interpreter(policy.program, input);
    }

    void write(DataOutput out) throws IOException {
        predictions.write(out);
        items.write(out);
        features.write(out);
    }

    void read(DataInput in) throws IOException {
        predictions.read(in);
        items.read(in);
        features.read(in);
    }
}
