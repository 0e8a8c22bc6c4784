package oal.stream.codec;

import java.util.regex.Pattern;

/**
 * Names of access points and sites that a certificate can carry: 1 to 64 letters, digits, dots, dashes and underscores,
 * a letter or digit first.
 */
public final class CertificateName {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}");

    private CertificateName() {}

    public static boolean is(String name) {
        return NAME.matcher(name).matches();
    }
}
