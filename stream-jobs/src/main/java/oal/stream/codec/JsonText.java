package oal.stream.codec;

/** Strings in JSON. */
public final class JsonText {
    private JsonText() {}

    public static void append(StringBuilder text, String s) {
        text.append('"');
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') text.append('\\').append(c);
            else if (c < 0x20) text.append(String.format("\\u%04x", (int) c));
            else text.append(c);
        }
        text.append('"');
    }
}
