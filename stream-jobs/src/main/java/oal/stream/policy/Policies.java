package oal.stream.policy;

import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Set;
import oal.schema.FeaturePrograms;
import oal.stream.label.LabelMaker;

/**
 * The policies whose items the job makes, in the order of the file of manifests; rwnd-fair is the first. At most
 * {@link ManifestFile#MAX}: each costs another evaluation of every batch and another state per access point. Policies
 * about destinations, which hosts decide on, have no items and are not among them.
 */
public final class Policies implements Serializable {
    private static final long serialVersionUID = 1L;

    /** In the jar: schema/generated/policies.json. */
    private static final String PACKED = "/oal/policies.json";

    private static final Policies RWND_FAIR_ALONE = new Policies(new byte[0]);

    /** The file; empty: rwnd-fair alone, with the program that this revision ships. */
    private final byte[] manifests;
    private transient List<Policy> all;
    private transient Set<Long> ofDestinations;

    private Policies(byte[] manifests) {
        this.manifests = manifests;
        read();
    }

    /** Of a file's bytes. IllegalArgumentException says what is wrong with it, and with which policy. */
    public static Policies of(byte[] manifests) {
        return manifests.length == 0 ? RWND_FAIR_ALONE : new Policies(manifests);
    }

    /** rwnd-fair alone, with the program that this revision ships. */
    public static Policies rwndFair() {
        return RWND_FAIR_ALONE;
    }

    /** Those that were there when the jar was built. */
    public static Policies packed() {
        try (InputStream in = Policies.class.getResourceAsStream(PACKED)) {
            if (in == null) throw new IllegalStateException("the jar lacks " + PACKED);
            return of(in.readAllBytes());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void read() {
        if (manifests.length > 0) {
            ManifestFile file = ManifestFile.read(manifests);
            all = file.all;
            ofDestinations = file.ofDestinations;
        } else {
            all = List.of(new Policy(Policy.RWND_FAIR, LabelMaker.CONGESTION, FeaturePrograms.CONGESTION));
            ofDestinations = Set.of();
        }
    }

    /** What {@link #of} makes the same items of; empty if they are those of {@link #rwndFair}. */
    public byte[] manifests() {
        return all.size() == 1 && first().same(RWND_FAIR_ALONE.first()) ? new byte[0] : manifests.clone();
    }

    public Policy first() {
        return all.get(0);
    }

    public int size() {
        return all.size();
    }

    public Policy get(int place) {
        return all.get(place);
    }

    /** Place of the policy whose program has this hash; −1: none. */
    public int withProgram(long featureHash) {
        for (int i = 0; i < all.size(); i++) if (all.get(i).featureHash == featureHash) return i;
        return -1;
    }

    /** Is this hash that of a program whose decisions are about destinations, so that none meets an item? */
    public boolean ofDestination(long featureHash) {
        return ofDestinations.contains(featureHash);
    }

    private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
        in.defaultReadObject();
        read();
    }
}
