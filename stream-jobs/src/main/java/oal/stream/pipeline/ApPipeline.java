package oal.stream.pipeline;

import oal.stream.access.AccessChange;
import oal.stream.access.AccessOperator;
import oal.stream.block.RowBlock;
import oal.stream.codec.DeadLetter;
import oal.stream.codec.RawBatch;
import oal.stream.decode.AcceptedBatch;
import oal.stream.decode.DecodeOperator;
import oal.stream.item.TrainingItem;
import oal.stream.neighbour.ApSecond;
import oal.stream.neighbour.NeighbourFunction;
import oal.stream.neighbour.NeighbourRecord;
import oal.stream.operator.BlockOperator;
import oal.stream.operator.PipelineSettings;
import oal.stream.platform.PlatformOperator;
import oal.stream.policy.Policies;
import oal.stream.process.ApOperator;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamUtils;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.transformations.TwoInputTransformation;

/**
 * The job between its sources and sinks: batch → decode → label, feature, item, prediction → neighbours; and the
 * platform's own records to rows. Batches are shuffled once, as bytes, by access point. What each access point did in a
 * second, a few numbers, is shuffled once more, by channel. Uids are part of the savepoint format: they never change.
 */
public final class ApPipeline {
    private ApPipeline() {}

    /** What the pipeline needs of the environment: no fallback to Kryo, and objects handed on without copies. */
    public static void configure(StreamExecutionEnvironment env) {
        Configuration c = new Configuration();
        c.set(PipelineOptions.GENERIC_TYPES, false);
        c.set(PipelineOptions.OBJECT_REUSE, true);
        env.configure(c);
    }

    public static void define(Inputs inputs, Sinks sinks, PipelineSettings settings, Policies policies) {
        SingleOutputStreamOperator<DeadLetter> accessRefused = inputs.access()
                .transform("access-records", TypeInformation.of(DeadLetter.class), new AccessOperator(settings))
                .uid("access-records").setParallelism(inputs.access().getParallelism());
        SingleOutputStreamOperator<AcceptedBatch> decoded =
                Decoded.of(inputs, accessRefused.getSideOutput(AccessOperator.CHANGES), settings).uid("decode");
        // A batch's key is its ap_id: anything else was refused. So no second shuffle is needed, and both operators run
        // as one task.
        KeyedStream<AcceptedBatch, String> byAp = DataStreamUtils.reinterpretAsKeyedStream(decoded, batch -> batch.apId,
                Types.STRING);
        SingleOutputStreamOperator<TrainingItem> items = byAp
                .transform("label-feature-item", TypeInformation.of(TrainingItem.class),
                        new ApOperator(settings, policies))
                .uid("label-feature-item");
        SingleOutputStreamOperator<NeighbourRecord> neighbours = items.getSideOutput(ApOperator.SECONDS)
                .keyBy(ApSecond::channel, Types.STRING)
                .process(new NeighbourFunction())
                .uid("neighbours").name("neighbours");
        SingleOutputStreamOperator<DeadLetter> platformRefused = inputs.platform()
                .transform("platform-events", TypeInformation.of(DeadLetter.class), new PlatformOperator(settings))
                .uid("platform-events");
        DataStream<RowBlock> rows = decoded.getSideOutput(BlockOperator.ROWS)
                .union(items.getSideOutput(BlockOperator.ROWS), platformRefused.getSideOutput(BlockOperator.ROWS),
                        accessRefused.getSideOutput(BlockOperator.ROWS));
        DataStream<DeadLetter> deadLetters = decoded.getSideOutput(DecodeOperator.DEAD_LETTERS)
                .union(platformRefused, accessRefused);
        sinks.write(rows, sinks.rows()).uid("rows-sink").name("rows");
        sinks.write(items, sinks.items()).uid("items-sink").name("training items");
        sinks.write(deadLetters, sinks.deadLetters()).uid("dead-letters-sink").name("dead letters");
        sinks.write(neighbours, sinks.neighbours()).uid("neighbours-sink").name("neighbour records");
    }

    /**
     * Batches by access point beside changes that every task gets. Flink's builder has no such thing for an operator
     * that is no function.
     */
    private static final class Decoded extends SingleOutputStreamOperator<AcceptedBatch> {
        private Decoded(StreamExecutionEnvironment env, TwoInputTransformation<RawBatch, AccessChange,
                AcceptedBatch> transformation) {
            super(env, transformation);
        }

        static Decoded of(Inputs inputs, DataStream<AccessChange> changes, PipelineSettings settings) {
            StreamExecutionEnvironment env = inputs.batches().getExecutionEnvironment();
            KeyedStream<RawBatch, String> byKey = inputs.batches().keyBy(batch -> batch.key, Types.STRING);
            TwoInputTransformation<RawBatch, AccessChange, AcceptedBatch> transformation = new TwoInputTransformation<>(
                    byKey.getTransformation(), changes.broadcast().getTransformation(), "decode",
                    new DecodeOperator(settings, inputs.accessBefore()), TypeInformation.of(AcceptedBatch.class),
                            env.getParallelism());
            transformation.setStateKeySelectors(byKey.getKeySelector(), null);
            transformation.setStateKeyType(byKey.getKeyType());
            env.addOperator(transformation);
            return new Decoded(env, transformation);
        }
    }
}
