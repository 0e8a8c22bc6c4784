package oal.stream.policy;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import oal.schema.FeatureProgram;
import oal.schema.Settings;
import oal.stream.codec.StrictJson;
import oal.stream.feature.ProgramFile;
import oal.stream.label.LabelMaker;

/**
 * Reads a file of manifests: {@code {"policies": [{"name", "subject", "label", "decision_interval_us", "feature_hash",
 * "feature_names", "words", …}, …]}} (schema/README.md). Other fields are not the job's and are skipped.
 *
 * <p>A policy about destinations decides on a session of a host at its end, and training makes its labels of later
 * sessions: it has no items, so its program and label are not looked at.
 */
final class ManifestFile {
    static final int MAX = 4;
    private static final String DESTINATION = "destination";
    private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9-]{0,30}");

    /** Those with items, in the file's order. */
    final List<Policy> all;
    /** Programs of those about destinations, by {@link Policy#featureHash}. */
    final Set<Long> ofDestinations;

    private ManifestFile(List<Policy> all, Set<Long> ofDestinations) {
        this.all = List.copyOf(all);
        this.ofDestinations = Set.copyOf(ofDestinations);
    }

    /** IllegalArgumentException says what is wrong, and with which policy. */
    static ManifestFile read(byte[] json) {
        List<Manifest> found = new ArrayList<>();
        try (JsonParser in = StrictJson.parser(json)) {
            expect(in.nextToken(), JsonToken.START_OBJECT);
            while (in.nextToken() == JsonToken.FIELD_NAME) {
                boolean policies = in.currentName().equals("policies");
                in.nextToken();
                if (!policies) {
                    in.skipChildren();
                    continue;
                }
                expect(in.currentToken(), JsonToken.START_ARRAY);
                while (in.nextToken() != JsonToken.END_ARRAY) found.add(new Manifest().read(in));
            }
        } catch (IOException e) {
            throw new IllegalArgumentException("policies: not JSON as it should be: "
                    + StrictJson.malformed(e).getMessage(), e);
        }
        List<Policy> all = found.stream().filter(m -> !m.ofDestination()).map(Manifest::policy).toList();
        if (all.isEmpty() || !found.get(0).name.equals(Policy.RWND_FAIR) || found.get(0).ofDestination()) {
            throw new IllegalArgumentException("policies: the first one must be " + Policy.RWND_FAIR);
        }
        if (all.size() > MAX) {
            throw new IllegalArgumentException("policies: " + all.size() + "; the job computes at most "
                    + MAX);
        }
        if (found.stream().map(m -> m.name).distinct().count() < found.size()) {
            throw new IllegalArgumentException("policies: one of them is named twice");
        }
        requireProgramsThatDiffer(found);
        return new ManifestFile(all, found.stream().filter(Manifest::ofDestination).map(Manifest::featureHash)
                .collect(Collectors.toSet()));
    }

    /** A decision names its program, not its policy: with one program, predictions of two could not be told apart. */
    private static void requireProgramsThatDiffer(List<Manifest> all) {
        Map<Long, String> seen = new HashMap<>();
        for (Manifest policy : all) {
            String first = seen.putIfAbsent(policy.featureHash(), policy.name);
            if (first != null) {
                throw new IllegalArgumentException("policies " + first + " and " + policy.name + " have the same "
                        + "feature program, so their predictions could not be told apart: change one's features.yaml");
            }
        }
    }

    private static void expect(JsonToken found, JsonToken wanted) {
        if (found != wanted) throw new IllegalArgumentException("policies: " + wanted + " was expected, not " + found);
    }

    /** One policy's entry, as read. */
    private static final class Manifest {
        private String name = "";
        private String subject = "";
        private String label = "";
        private long intervalUs;
        private String hash = "";
        private String[] features = {};
        private long[][] words = {};

        Manifest read(JsonParser in) throws IOException {
            expect(in.currentToken(), JsonToken.START_OBJECT);
            while (in.nextToken() == JsonToken.FIELD_NAME) {
                String field = in.currentName();
                in.nextToken();
                switch (field) {
                    case "name" -> name = in.getText();
                    case "subject" -> subject = in.getText();
                    case "label" -> label = in.getText();
                    case "decision_interval_us" -> intervalUs = in.getLongValue();
                    case "feature_hash" -> hash = in.getText();
                    case "feature_names" -> features = texts(in);
                    case "words" -> words = words(in);
                    default -> in.skipChildren();
                }
            }
            return this;
        }

        private static String[] texts(JsonParser in) throws IOException {
            List<String> out = new ArrayList<>();
            expect(in.currentToken(), JsonToken.START_ARRAY);
            while (in.nextToken() != JsonToken.END_ARRAY) out.add(in.getText());
            return out.toArray(String[]::new);
        }

        private static long[][] words(JsonParser in) throws IOException {
            List<long[]> out = new ArrayList<>();
            expect(in.currentToken(), JsonToken.START_ARRAY);
            while (in.nextToken() != JsonToken.END_ARRAY) {
                expect(in.currentToken(), JsonToken.START_ARRAY);
                long[] w = new long[ProgramFile.WORDS];
                int n = 0;
                while (in.nextToken() != JsonToken.END_ARRAY) {
                    if (n == w.length) throw new IllegalArgumentException("policies: a feature of over 12 words");
                    w[n++] = in.getLongValue();
                }
                if (n < w.length) throw new IllegalArgumentException("policies: a feature of " + n + " words, not 12");
                out.add(w);
            }
            return out.toArray(long[][]::new);
        }

        boolean ofDestination() {
            return subject.equals(DESTINATION);
        }

        long featureHash() {
            requireName();
            try {
                return Long.parseUnsignedLong(hash);
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException("policy " + name + ": feature_hash is '" + StrictJson.brief(hash)
                        + "', no number of 64 bits", e);
            }
        }

        private void requireName() {
            if (!NAME.matcher(name).matches()) {
                throw new IllegalArgumentException("policies: '" + StrictJson.brief(name) + "' is no name of a policy");
            }
        }

        Policy policy() {
            requireName();
            try {
                if (intervalUs != Settings.DECISION_INTERVAL_US) {
                    throw new IllegalArgumentException("decides every " + intervalUs + " µs; labels are made every "
                            + Settings.DECISION_INTERVAL_US);
                }
                if (words.length == 0 || features.length != words.length) {
                    throw new IllegalArgumentException(words.length + " features with " + features.length + " names");
                }
                FeatureProgram program = ProgramFile.program(name, intervalUs, words, features);
                Policy policy = new Policy(name, LabelMaker.named(label), program);
                if (!hash.equals(Long.toUnsignedString(policy.featureHash))) {
                    throw new IllegalArgumentException("feature_hash is '" + StrictJson.brief(hash)
                            + "', that of its words " + Long.toUnsignedString(policy.featureHash));
                }
                return policy;
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException("policy " + name + ": " + e.getMessage(), e);
            }
        }
    }
}
