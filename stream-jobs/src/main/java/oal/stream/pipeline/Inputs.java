package oal.stream.pipeline;

import oal.stream.access.AccessHistory;
import oal.stream.codec.JsonRecord;
import oal.stream.codec.RawBatch;
import org.apache.flink.streaming.api.datastream.DataStream;

/**
 * What the pipeline reads.
 *
 * @param batches records of all topics that access points write, with {@link BrokerTime} watermarks
 * @param platform records of {@code platform.events.v1}
 * @param access records of {@code ap.access.v1}
 * @param accessBefore what that topic says when a task starts
 */
public record Inputs(DataStream<RawBatch> batches, DataStream<JsonRecord> platform, DataStream<JsonRecord> access,
        AccessHistory accessBefore) {}
