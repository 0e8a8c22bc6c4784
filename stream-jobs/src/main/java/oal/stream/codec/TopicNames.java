package oal.stream.codec;

import oal.schema.Topic;

/** Topics by ordinal, without the copy that {@code Topic.values()} makes at each call. */
public final class TopicNames {
    static final Topic[] ALL = Topic.values();

    private TopicNames() {}

    public static Topic at(int ordinal) {
        return ALL[ordinal];
    }

    /** The topic with this Kafka name. */
    public static Topic of(String kafkaName) {
        for (Topic t : ALL) if (t.kafkaName.equals(kafkaName)) return t;
        throw new IllegalArgumentException("no access point writes topic '" + kafkaName + "'");
    }
}
