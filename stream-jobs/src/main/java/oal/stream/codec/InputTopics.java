package oal.stream.codec;

/** Topics that the stream jobs read besides those of access points (oal.schema.Topic). */
public final class InputTopics {
    /** Written by the online trainer, the model registry, the push service and the lab. */
    public static final String PLATFORM_EVENTS = "platform.events.v1";

    /** Written by the push service: which access points are revoked. Compacted. */
    public static final String ACCESS = "ap.access.v1";

    private InputTopics() {}
}
