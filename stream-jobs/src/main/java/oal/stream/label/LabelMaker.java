package oal.stream.label;

import java.util.Arrays;
import java.util.stream.Collectors;

/** What can be said of the time after an instant, by the name that a policy's manifest gives it ({@code label}). */
public enum LabelMaker {
    /** Losses of downloads by sequence space, as a class. */
    CONGESTION("congestion");

    public final String label;

    LabelMaker(String label) {
        this.label = label;
    }

    /** The maker of that name. IllegalArgumentException names those that there are. */
    public static LabelMaker named(String name) {
        for (LabelMaker m : values()) if (m.label.equals(name)) return m;
        throw new IllegalArgumentException("no label is called '" + name + "'; this job makes: "
                + Arrays.stream(values()).map(m -> m.label).collect(Collectors.joining(", ")));
    }
}
