package oal.stream.codec;

import oal.schema.TrainingItemMessage;

/** Topics that the stream jobs write. */
public final class OutputTopics {
    public static final String ITEMS = TrainingItemMessage.TOPIC;
    public static final String DEAD_LETTERS = "dead.letters.v1";
    public static final String NEIGHBOURS = "ap.neighbours.v1";

    private OutputTopics() {}
}
