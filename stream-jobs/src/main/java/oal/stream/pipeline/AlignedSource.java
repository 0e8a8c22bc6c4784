package oal.stream.pipeline;

import java.io.Serializable;
import java.time.Duration;
import java.time.InstantSource;
import oal.stream.codec.RawBatch;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * A source of batches whose readers make the watermarks that {@link BrokerTime} aligns. It reads what the source within
 * reads, and its state is that source's: a checkpoint made without this one restores.
 */
public final class AlignedSource<SplitT extends SourceSplit, StateT> implements Source<RawBatch, SplitT, StateT>,
        ResultTypeQueryable<RawBatch> {
    private static final long serialVersionUID = 1L;

    /** Made where the reader is. */
    public interface EndsFactory<SplitT> extends Serializable {
        PartitionEnds<SplitT> create();
    }

    private final Source<RawBatch, SplitT, StateT> inner;
    private final EndsFactory<SplitT> ends;
    private final Duration behind;
    private final long maxBytes;

    /**
     * @param behind a partition counts as read up to no less than this long ago
     * @param maxBytes of batches that a reader reads before a checkpoint is complete; then it waits for one
     */
    public AlignedSource(Source<RawBatch, SplitT, StateT> inner, EndsFactory<SplitT> ends, Duration behind,
            long maxBytes) {
        this.maxBytes = maxBytes;
        this.inner = inner;
        this.ends = ends;
        this.behind = behind;
    }

    @Override
    public SourceReader<RawBatch, SplitT> createReader(SourceReaderContext context) throws Exception {
        UncommittedBytes bytes = new UncommittedBytes(maxBytes);
        context.metricGroup().gauge("uncommittedBytes", bytes::held);
        return new AlignedReader<>(inner.createReader(context), ends.create(), behind.toMillis(), bytes,
                InstantSource.system());
    }

    @Override
    public Boundedness getBoundedness() {
        return inner.getBoundedness();
    }

    @Override
    public SplitEnumerator<SplitT, StateT> createEnumerator(SplitEnumeratorContext<SplitT> context) throws Exception {
        return inner.createEnumerator(context);
    }

    @Override
    public SplitEnumerator<SplitT, StateT> restoreEnumerator(SplitEnumeratorContext<SplitT> context, StateT state)
            throws Exception {
        return inner.restoreEnumerator(context, state);
    }

    @Override
    public SimpleVersionedSerializer<SplitT> getSplitSerializer() {
        return inner.getSplitSerializer();
    }

    @Override
    public SimpleVersionedSerializer<StateT> getEnumeratorCheckpointSerializer() {
        return inner.getEnumeratorCheckpointSerializer();
    }

    @Override
    public TypeInformation<RawBatch> getProducedType() {
        return TypeInformation.of(RawBatch.class);
    }
}
