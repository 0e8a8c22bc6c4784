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
import oal.stream.state.StateSettings;

/** What the job remembers about one access point for one policy. */
final class PolicyState {
    final Policy policy;
    final Interpreter features;
    final ItemJoin items;
    final PredictionJoin predictions;

    PolicyState(Policy policy, LongToIntFunction bootOrder, Input input, StateSettings settings) {
        this(policy, new PredictionJoin(bootOrder), input, settings);
    }

    /** With the decisions that wait; items and features begin anew. */
    PolicyState(Policy policy, PredictionJoin predictions, Input input, StateSettings settings) {
        this.policy = policy;
        this.predictions = predictions;
        items = new ItemJoin(settings);
        features = new Interpreter(policy.program, input);
    }

    void write(DataOutput out) throws IOException {
        predictions.write(out);
        items.write(out);
        features.write(out);
    }

    void read(DataInput in, StateSettings was) throws IOException {
        predictions.read(in, was);
        items.read(in, was);
        features.read(in);
    }
}
