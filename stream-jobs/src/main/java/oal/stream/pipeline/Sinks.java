package oal.stream.pipeline;

import oal.stream.block.RowBlock;
import oal.stream.codec.DeadLetter;
import oal.stream.item.TrainingItem;
import oal.stream.neighbour.NeighbourRecord;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamSink;

/**
 * Where the pipeline's outputs go.
 *
 * @param parallelism writers of each sink; each makes an insert per table and a transaction at every checkpoint. 0: as
 *     many as operators
 */
public record Sinks(Sink<RowBlock> rows, Sink<TrainingItem> items, Sink<DeadLetter> deadLetters,
        Sink<NeighbourRecord> neighbours, int parallelism) {
    public Sinks(Sink<RowBlock> rows, Sink<TrainingItem> items, Sink<DeadLetter> deadLetters,
            Sink<NeighbourRecord> neighbours) {
        this(rows, items, deadLetters, neighbours, 0);
    }

    <T> DataStreamSink<T> write(DataStream<T> stream, Sink<T> sink) {
        DataStreamSink<T> written = stream.sinkTo(sink);
        return parallelism > 0 ? written.setParallelism(parallelism) : written;
    }
}
