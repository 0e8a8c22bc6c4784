package oal.stream;

import java.nio.file.Path;

/** The job's entry point: {@code --config FILE} or {@code --help}. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 1 && ("--help".equals(arguments[0]) || "-h".equals(arguments[0]))) {
            System.out.print(help());
            return;
        }
        if (arguments.length != 2 || !"--config".equals(arguments[0])) {
            throw new IllegalArgumentException("the job takes `--config FILE` or `--help`, not `"
                    + String.join(" ", arguments) + "`");
        }
        StreamJob.of(JobConfig.read(Path.of(arguments[1]))).execute();
    }

    static String help() {
        StringBuilder text = new StringBuilder("""
                usage: flink run stream-jobs.jar --config FILE

                Reads what access points send to Kafka; writes rows, labels, predictions, training items and who
                shares a channel to ClickHouse and Kafka, each exactly once.
                FILE is a Java properties file. Checkpoint storage, restart strategy and state backend are Flink's
                configuration.

                kafka.NAME
                    option NAME of Kafka's clients: kafka.bootstrap.servers, kafka.security.protocol,
                    kafka.ssl.keystore.location, … (must be given: kafka.bootstrap.servers; defaults:
                    kafka.group.id=oal-stream-jobs, kafka.transaction.timeout.ms=900000)
                """);
        for (Key key : Key.values()) {
            text.append(key.name).append("\n    ").append(key.meaning);
            if (key.byDefault == null) text.append(" (must be given)");
            else if (!key.byDefault.isEmpty()) text.append(" (default: ").append(key.byDefault).append(')');
            text.append('\n');
        }
        return text.toString();
    }
}
