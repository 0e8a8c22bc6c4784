package oal.stream.neighbour;

/**
 * Who shares a channel, for {@code ap.neighbours.v1}: key = SITE/FREQUENCY_MHZ, value = JSON (see
 * {@link NeighbourJson}).
 */
public class NeighbourRecord {
    public String channel;
    /** UTF-8; null: nobody shares the channel any more. */
    public byte[] json;

    /** For Flink's serializer. */
    public NeighbourRecord() {}

    NeighbourRecord(String channel, byte[] json) {
        this.channel = channel;
        this.json = json;
    }
}
