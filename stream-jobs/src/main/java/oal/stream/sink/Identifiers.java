package oal.stream.sink;

/** Names that go into SQL text unquoted. */
final class Identifiers {
    private Identifiers() {}

    /** Letters, digits and underscores, not starting with a digit. */
    static boolean isPlain(String name) {
        if (name == null || name.isEmpty() || Character.isDigit(name.charAt(0))) return false;
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            if (!(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_')) return false;
        }
        return true;
    }
}
