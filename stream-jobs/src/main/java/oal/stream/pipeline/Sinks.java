package oal.stream.pipeline;

import org.apache.flink.api.connector.sink2.Sink;
import oal.stream.codec.DeadLetter;
import oal.stream.item.TrainingItem;
import oal.stream.sink.RowBlock;

/** Where the pipeline's outputs go. */
public record Sinks(Sink<RowBlock> rows, Sink<TrainingItem> items, Sink<DeadLetter> deadLetters) {}
