package oal.stream.neighbour;

import oal.stream.codec.CertificateName;

/** What an access point did on one channel in a second; its neighbours get these numbers. */
public class ApSecond {
    public String apId;
    public String site;
    public int frequencyMhz;
    /** Time at which the broker received the batch that ended the second, ms since 1970. */
    public long takenMs;
    /** Stations that were sent something. */
    public int stations;
    public long txKbps;
    public int txAirtimePermille;
    public int busyPermille;
    /** Congestion loss over what was offered, in the label window that ended last; of the whole access point. */
    public int lossPermille;
    /** Mean over the second. */
    public long backlogBytes;

    /** For Flink's serializer. */
    public ApSecond() {}

    /** Key of the channel: those who have the same may hear each other. */
    public String channel() {
        return site + "/" + frequencyMhz;
    }

    /**
     * Are its names usable? Access points without a site have no neighbours, and the push service sends nothing to
     * names that no certificate can carry. The check also limits a record's length.
     */
    public boolean named() {
        return CertificateName.is(site) && CertificateName.is(apId);
    }
}
