import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/**
 * Does Java's own trust manager, which Kafka and Flink use, let this chain in as a client? usage: java Verify.java
 * TRUST(.crt or .p12) PASSWORD CHAIN...
 */
final class Verify {
    public static void main(String[] arguments) throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        KeyStore store = KeyStore.getInstance("PKCS12");
        if (arguments[0].endsWith(".p12")) {
            store.load(new FileInputStream(arguments[0]), arguments[1].toCharArray());
        } else {
            store.load(null, null);
            int number = 0;
            for (var anchor : factory.generateCertificates(new FileInputStream(arguments[0]))) {
                store.setCertificateEntry("anchor" + number++, anchor);
            }
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance("PKIX");
        managers.init(store);
        X509TrustManager manager = (X509TrustManager) managers.getTrustManagers()[0];
        for (String file : Arrays.asList(arguments).subList(2, arguments.length)) {
            X509Certificate[] chain =
                    factory.generateCertificates(new FileInputStream(file)).toArray(X509Certificate[]::new);
            try {
                manager.checkClientTrusted(chain, "EC");
                System.out.println("trusted");
            } catch (CertificateException refused) {
                Throwable cause = refused;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                System.out.println("refused: " + cause.getMessage());
            }
        }
    }
}
