package oal.stream.source;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import oal.stream.pipeline.PartitionEnds;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsResult;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;

/**
 * Asks the brokers how far the partitions go, twice a second. Answers come on the client's own thread; a broker that
 * does not answer leaves its partitions unknown.
 */
final class KafkaEnds implements PartitionEnds<KafkaPartitionSplit> {
    private static final long EVERY_MS = 500;
    /** An answer that is later than this is not awaited: it may be lost. */
    private static final int TIMEOUT_MS = 10_000;

    private final Admin admin;
    private final String group;
    private final boolean fromEarliest;
    private final Map<String, TopicPartition> partitions = new HashMap<>();
    /** Whose start is the group's offset, or where the topic begins or ends. */
    private final Set<TopicPartition> unknownStarts = ConcurrentHashMap.newKeySet();
    private final Map<String, End> ends = new ConcurrentHashMap<>();
    private final Map<String, Long> starts = new ConcurrentHashMap<>();
    private volatile long answeredMs = Long.MIN_VALUE;
    private long askedMs = Long.MIN_VALUE;

    KafkaEnds(KafkaClient kafka, boolean fromEarliest) {
        Properties properties = kafka.admin();
        properties.setProperty("default.api.timeout.ms", Integer.toString(TIMEOUT_MS));
        properties.setProperty("request.timeout.ms", Integer.toString(TIMEOUT_MS / 2));
        admin = Admin.create(properties);
        group = kafka.groupId();
        this.fromEarliest = fromEarliest;
    }

    @Override
    public void watch(List<KafkaPartitionSplit> splits) {
        for (KafkaPartitionSplit split : splits) {
            partitions.put(split.splitId(), split.getTopicPartition());
            if (split.getStartingOffset() >= 0) starts.put(split.splitId(), split.getStartingOffset());
            else unknownStarts.add(split.getTopicPartition());
        }
        askedMs = Long.MIN_VALUE;
    }

    @Override
    public void refresh(long nowMs) {
        boolean justAsked = askedMs != Long.MIN_VALUE && nowMs >= askedMs && nowMs - askedMs < EVERY_MS;
        if (partitions.isEmpty() || justAsked) return;
        askedMs = nowMs;
        if (!unknownStarts.isEmpty()) askStarts();
        ListOffsetsResult result = listOffsets(partitions.values(), OffsetSpec.latest());
        partitions.forEach((id, partition) -> result.partitionResult(partition).whenComplete((info, failure) -> {
            if (failure != null) return;
            ends.merge(id, new End(info.offset(), nowMs), (a, b) -> a.askedMs() > b.askedMs() ? a : b);
            answeredMs = Math.max(answeredMs, nowMs);
        }));
    }

    private ListOffsetsResult listOffsets(Iterable<TopicPartition> of, OffsetSpec spec) {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        for (TopicPartition partition : of) asked.put(partition, spec);
        return admin.listOffsets(asked, new ListOffsetsOptions(IsolationLevel.READ_COMMITTED).timeoutMs(TIMEOUT_MS));
    }

    /** As the source decides it: the group's offset, else the beginning or the end. Asked until it is known. */
    private void askStarts() {
        List<TopicPartition> of = List.copyOf(unknownStarts);
        ListConsumerGroupOffsetsResult committed = admin.listConsumerGroupOffsets(group);
        ListOffsetsResult otherwise = listOffsets(of, fromEarliest ? OffsetSpec.earliest() : OffsetSpec.latest());
        committed.partitionsToOffsetAndMetadata().whenComplete((offsets, failure) -> {
            if (failure != null) return;
            for (TopicPartition partition : of) {
                if (offsets.get(partition) != null) started(partition, offsets.get(partition).offset());
                else otherwise.partitionResult(partition).whenComplete((info, unknown) -> {
                    if (unknown == null) started(partition, info.offset());
                });
            }
        });
    }

    private void started(TopicPartition partition, long offset) {
        if (unknownStarts.remove(partition)) starts.put(KafkaPartitionSplit.toSplitId(partition), offset);
    }

    @Override
    public End end(String splitId) {
        return ends.get(splitId);
    }

    @Override
    public long start(String splitId) {
        return starts.getOrDefault(splitId, -1L);
    }

    @Override
    public long answeredMs() {
        return answeredMs;
    }

    @Override
    public void close() {
        admin.close(Duration.ZERO);
    }
}
