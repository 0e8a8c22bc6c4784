package oal.stream.codec;

import java.util.Arrays;
import oal.schema.Fields;
import oal.schema.Settings;

/** Header of a batch (message {@code Header}). Reused from batch to batch. */
public final class BatchHeader {
    /** Rows lie less than this after {@link #t0Us}, µs. */
    public static final long MAX_OFFSET_US = 1L << 40;

    private static final long MAX_U32 = 0xFFFFFFFFL;

    public String apId;
    public String site;
    public long bootId;
    public long seq;
    public long t0Us;
    public long tickUs;
    public long ticks;
    public long schemaRevision;
    public long ringDrops;
    public long rowsDropped;
    public long dumpsInterrupted;
    public long tickLateMaxUs;
    public long clockState;
    public long clockErrorUs;
    public long featureHash;
    /** Ticks on which nothing could be sampled; at most {@link #ticks}. */
    public long ticksMissed;
    /** The first and the end of the last of them; equal when there are none. */
    public long missedFromTick;
    public long missedUntilTick;
    /** The longest stretch of them. */
    public long missedLongestTicks;
    public int names;

    private String[] name = new String[16];
    private final Text text = new Text();
    private final Wire list = new Wire();

    /** End of the time that the batch covers, µs since 1970. */
    public long endUs() {
        return t0Us + ticks * tickUs;
    }

    /** Entry of the dictionary for columns of type NAME. */
    public String name(int index) {
        return name[index];
    }

    void decode(Wire w) throws RefusedException {
        clear();
        long starts = 0;
        long lengths = 0;
        while (w.more()) {
            w.next();
            switch (w.field) {
                case Fields.HEADER_AP_ID -> apId = string(w, "ap_id");
                case Fields.HEADER_SITE -> site = string(w, "site");
                case Fields.HEADER_BOOT_ID -> bootId = fixed(w, "boot_id");
                case Fields.HEADER_SEQ -> seq = number(w, "seq");
                case Fields.HEADER_T0_US -> t0Us = number(w, "t0_us");
                case Fields.HEADER_TICK_US -> tickUs = number(w, "tick_us");
                case Fields.HEADER_TICKS -> ticks = number(w, "ticks");
                case Fields.HEADER_SCHEMA_REVISION -> schemaRevision = number(w, "schema_revision");
                case Fields.HEADER_MISSED_START -> starts += starts(w);
                case Fields.HEADER_MISSED_TICKS -> lengths += lengths(w);
                case Fields.HEADER_RING_DROPS -> ringDrops = number(w, "ring_drops");
                case Fields.HEADER_ROWS_DROPPED -> rowsDropped = number(w, "rows_dropped");
                case Fields.HEADER_DUMPS_INTERRUPTED -> dumpsInterrupted = number(w, "dumps_interrupted");
                case Fields.HEADER_TICK_LATE_MAX_US -> tickLateMaxUs = number(w, "tick_late_max_us");
                case Fields.HEADER_CLOCK_STATE -> clockState = number(w, "clock_state");
                case Fields.HEADER_CLOCK_ERROR_US -> clockErrorUs = number(w, "clock_error_us");
                case Fields.HEADER_NAMES -> addName(string(w, "names"));
                case Fields.HEADER_FEATURE_HASH -> featureHash = fixed(w, "feature_hash");
                default -> { } // a later revision's field
            }
        }
        u32(tickUs, "tick_us");
        u32(ticks, "ticks");
        u32(schemaRevision, "schema_revision");
        u32(ringDrops, "ring_drops");
        u32(rowsDropped, "rows_dropped");
        u32(dumpsInterrupted, "dumps_interrupted");
        u32(tickLateMaxUs, "tick_late_max_us");
        u32(clockState, "clock_state");
        u32(clockErrorUs, "clock_error_us");
        if (t0Us < 0 || t0Us >= 1L << 62 || seq < 0) throw RefusedException.valueRange("header.t0_us or header.seq");
        if (tickUs == 0 || ticks == 0) throw RefusedException.malformed("header without tick_us or ticks");
        if (ticks > (MAX_OFFSET_US - 1) / tickUs) throw RefusedException.valueRange("header.ticks");
        if (starts != lengths) throw RefusedException.malformed("missed_start and missed_ticks differ in length");
        if (apId.isEmpty()) throw RefusedException.malformed("header without ap_id");
        if (schemaRevision < 1 || schemaRevision > Settings.SCHEMA_REVISION) {
            throw new RefusedException(Refusal.UNKNOWN_REVISION,
                    "schema_revision " + schemaRevision + "; this reader knows up to " + Settings.SCHEMA_REVISION);
        }
        settleMissed(starts);
    }

    private void clear() {
        apId = "";
        site = "";
        bootId = seq = t0Us = tickUs = ticks = schemaRevision = 0;
        ringDrops = rowsDropped = dumpsInterrupted = tickLateMaxUs = clockState = clockErrorUs = featureHash = 0;
        ticksMissed = 0;
        missedLongestTicks = 0;
        missedFromTick = Long.MAX_VALUE;
        missedUntilTick = 0;
        names = 0;
    }

    private String string(Wire w, String what) throws RefusedException {
        want(w, Wire.BYTES, what);
        return text.decode(w.data, w.from, w.to, what);
    }

    private long fixed(Wire w, String what) throws RefusedException {
        want(w, Wire.FIXED64, what);
        return w.fixed64(w.from);
    }

    private long number(Wire w, String what) throws RefusedException {
        want(w, Wire.VARINT, what);
        list.reset(w.data, w.from, w.to);
        return list.varint();
    }

    private long starts(Wire w) throws RefusedException {
        want(w, Wire.BYTES, "missed_start");
        list.reset(w.data, w.from, w.to);
        long n = 0;
        while (list.more()) {
            long start = list.varint();
            if (start >= 0) {
                missedFromTick = Math.min(missedFromTick, start);
                missedUntilTick = Math.max(missedUntilTick, start);
            }
            n++;
        }
        return n;
    }

    private long lengths(Wire w) throws RefusedException {
        want(w, Wire.BYTES, "missed_ticks");
        list.reset(w.data, w.from, w.to);
        long n = 0;
        while (list.more()) {
            long ticks = list.varint();
            long bounded = ticks < 0 ? MAX_U32 : Math.min(ticks, MAX_U32);
            ticksMissed += bounded;
            missedLongestTicks = Math.max(missedLongestTicks, bounded);
            n++;
        }
        return n;
    }

    /** Several ranges are kept as one that spans them all: at most all missed ticks can follow the last start. */
    private void settleMissed(long ranges) {
        ticksMissed = Math.min(ticksMissed, ticks);
        if (ranges == 0 || ticksMissed == 0) {
            missedFromTick = missedUntilTick = ticksMissed = 0;
            return;
        }
        missedFromTick = Math.min(missedFromTick, ticks);
        missedUntilTick = Math.min(ticks, missedUntilTick + ticksMissed);
    }

    private void addName(String s) {
        if (names == name.length) name = Arrays.copyOf(name, names * 2);
        name[names++] = s;
    }

    private static void want(Wire w, int type, String what) throws RefusedException {
        if (w.type != type) throw RefusedException.malformed("header." + what + " has wire type " + w.type);
    }

    private static void u32(long value, String what) throws RefusedException {
        if (value < 0 || value > MAX_U32) {
            throw RefusedException.valueRange("header." + what + " is " + Long.toUnsignedString(value));
        }
    }
}
